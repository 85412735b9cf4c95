"""The name of a store on a server: a URL of libpq with the further parameter `store`."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from storage.errors import InvalidValue
from storage.values.named_tuple import NamedTuple

DEFAULT_STORE = "txnctl"
COPY_SUFFIX = "$copy"
"""The end of the name of a store that a copy is building; the copy alone opens it."""

_STORE = re.compile(r"[a-z_][a-z0-9_]{0,39}(\$copy)?")
_DEFAULT_SESSION = ("target_session_attrs", "read-write")
_RESERVED = ("public", "information_schema")
_EXAMPLE = "postgresql://user@host/database?store=bank"


class StoreUrl(NamedTuple):
    """A parsed URL.

    Attributes:
        conninfo: the URL for libpq, which knows no parameter `store`.
        store: the name of the store: the schema that holds the tables.
        shown: the URL without a password; equal stores are named by equal texts.
    """

    conninfo: str
    store: str
    shown: str

    @property
    def whole(self) -> str:
        """The URL with all that it was given, a password too: for opening, never for showing."""
        return f"{self.conninfo}&store={self.store}"

    def for_copy(self) -> StoreUrl:
        """The URL of the unfinished copy to this store."""
        return StoreUrl(self.conninfo, self.store + COPY_SUFFIX, self.shown + COPY_SUFFIX)

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
            parameters = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError as error:
            raise InvalidValue(
                f"the URL of a store cannot be read: {error}", hint=f"Write it like {_EXAMPLE}."
            ) from None
        names = [name for name, _ in parameters]
        if len(set(names)) < len(names):
            raise InvalidValue(
                "the URL of a store names a parameter twice", hint=f"Write it like {_EXAMPLE}."
            )
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        if (password or "password" in names) and not with_password:
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
        host = parts.netloc.rpartition("@")[2]
        given.setdefault(*_DEFAULT_SESSION)
        conninfo = f"postgresql://{parts.netloc}{parts.path}?{urlencode(given, quote_via=quote)}"
        hidden = ("password", "sslpassword")
        named = {
            name: value
            for name, value in sorted(given.items())
            if name not in hidden and (name, value) != _DEFAULT_SESSION
        }
        shown = urlencode({**named, "store": store}, quote_via=quote, safe="/,$")
        return cls(conninfo, store, f"postgresql://{user + '@' if user else ''}{host}{parts.path}?{shown}")
