"""The name of a store on a server: a URL of libpq with the further parameter `store`."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlencode, urlsplit

from storage.errors import InvalidValue
from storage.values.named_tuple import NamedTuple
from storage.values.store_name import EXAMPLE

DEFAULT_STORE = "txnctl"
COPY_SUFFIX = "$copy"
"""The end of the name of a store that a copy is building; the copy alone opens it."""

_STORE = re.compile(r"[a-z_][a-z0-9_]{0,39}(\$copy)?")
_DEFAULT_SESSION = ("target_session_attrs", "primary")
"""A role that is to read only is admitted as well; `read-write` would take its server for a standby."""
_SECRET = ("password", "sslpassword")
_RESERVED = ("public", "information_schema")
_LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_HOST = r"(\[[^\]]*\]|[^:,\[\]]*)(:[0-9]*)?"
_HOSTS = re.compile(rf"{_HOST}(,{_HOST})*")
"""Hosts with their ports. The part of a password behind an unescaped sign is none, and must not be shown as one."""


class StoreUrl(NamedTuple):
    """A parsed URL.

    Attributes:
        conninfo: the URL for libpq, which knows no parameter `store`.
        store: the name of the store: the schema that holds the tables.
        shown: the URL without a password; equal stores are named by equal texts.
        has_password: whether the URL has a password, of the user or of a key.
    """

    conninfo: str
    store: str
    shown: str
    has_password: bool = False

    @property
    def whole(self) -> str:
        """The URL with all that it was given, a password too: for opening, never for showing."""
        return f"{self.conninfo}&store={self.store}"

    def for_copy(self) -> StoreUrl:
        """The URL of the unfinished copy to this store."""
        return self._replace(store=self.store + COPY_SUFFIX, shown=self.shown + COPY_SUFFIX)

    @classmethod
    def parse(cls, text: str, *, with_password: bool = True) -> StoreUrl:
        """Parse the URL of a store.

        Args:
            with_password: whether a password is accepted: from the environment, and never from a command line, which
                other users see.

        Raises:
            InvalidValue
        """
        try:
            parts = urlsplit(text)
            parameters = _parameters(parts.query)
        except ValueError:
            raise unreadable() from None
        login, _, host = parts.netloc.rpartition("@")
        if "@" in f"{login}{parts.path}{parts.query}" or parts.fragment or not _HOSTS.fullmatch(host):
            raise unreadable()
        names = [name for name, _ in parameters]
        if len(set(names)) < len(names):
            raise InvalidValue("the URL of a store names a parameter twice", hint=f"Write it like {EXAMPLE}.")
        user, _, password = login.partition(":")
        has_password = bool(password or set(_SECRET).intersection(names))
        if has_password and not with_password:
            raise InvalidValue(
                "the URL of a store has a password, which every user of this machine could read",
                hint="Put the password into a file that PGPASSFILE names, or the URL into TXNCTL_STORE.",
                parameter="password",
            )
        given = dict(parameters)
        store = given.pop("store", DEFAULT_STORE)
        if not _STORE.fullmatch(store) or store in _RESERVED or store.startswith("pg_"):
            raise InvalidValue(
                f"{store!r} is no name of a store on a server",
                hint="A name has up to 40 of a-z, 0-9 and _, no digit first, and is no schema of PostgreSQL's own.",
            )
        given.setdefault(*_DEFAULT_SESSION)
        conninfo = f"postgresql://{parts.netloc}{parts.path}?{urlencode(given, quote_via=quote)}"
        named = {
            name: value
            for name, value in sorted(given.items())
            if name not in _SECRET and (name, value) != _DEFAULT_SESSION
        }
        shown = urlencode({**named, "store": store}, quote_via=quote, safe="/,$")
        shown = f"postgresql://{user + '@' if user else ''}{host}{parts.path}?{shown}"
        return cls(conninfo, store, shown, has_password)


def _parameters(query: str) -> list[tuple[str, str]]:
    """The parameters as libpq reads them: a `+` is a plus sign.

    Raises:
        ValueError: a part is no `name=value`, or not UTF-8, or a `%` begins no byte.
    """
    if _LONE_PERCENT.search(query):
        raise ValueError(query)
    pairs = [part.split("=") for part in query.split("&") if query]
    return [(unquote(name, errors="strict"), unquote(value, errors="strict")) for name, value in pairs]


def unreadable(why: str | None = None) -> InvalidValue:
    """The error for a text that is no URL.

    Args:
        why: the reason; None where the reason may show a part of a password.
    """
    return InvalidValue(
        f"the URL of a store cannot be read{'' if why is None else f': {why}'}",
        hint=f"Write it like {EXAMPLE}; a sign such as @ / ? # & in a name or password is %40 %2F %3F %23 %26.",
    )
