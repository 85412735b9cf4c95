"""The form of a store's name: the path of a directory, or the URL of a server."""

from __future__ import annotations

from storage.errors import InvalidValue

_SCHEMES = ("postgresql://", "postgres://")
EXAMPLE = "postgresql://user@host/database?store=bank"
"""The form of a URL, for hints."""


def has_scheme(name: str) -> bool:
    """Whether a name, of a store or of files, has the scheme of a URL of a store."""
    return name.startswith(_SCHEMES)


def is_url(name: str) -> bool:
    """Whether a store is named by the URL of a server; the judge of names at every door.

    Raises:
        InvalidValue: neither a URL of a store nor the path of a directory: an empty text, a different scheme, the
            parameters of a connection, a quote before the scheme. The error repeats no name, for a name may hold a
            password.
    """
    if has_scheme(name):
        return True
    if not name:
        raise InvalidValue("no store is named: the path is empty", hint="The current directory is `.`.")
    if (":" in name or "=" in name) and not name.startswith(("/", ".")):
        _check_path(name)
    return False


def _check_path(name: str) -> None:
    import re

    text = name.strip(" \t\r\n'\"")
    is_scheme = re.match(r"[A-Za-z][A-Za-z0-9+.:-]*:/|(jdbc|postgres)[A-Za-z0-9+.-]*:", text, re.IGNORECASE)
    is_conninfo = re.match(r"(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=", text)
    if is_scheme or is_conninfo or re.match(r"[^/\s]*:[^/\s]*@[^/\s]+/", text):
        raise InvalidValue(
            "the name of a store looks like the address of a server and is not of its form",
            hint=f"Write {EXAMPLE}; a directory of such a name is ./NAME.",
            parameter="password",
        )


def without_passwords(text: str) -> str:
    """A text without the passwords of addresses of servers in it, mistyped ones included."""
    if "://" not in text and "password" not in text:
        return text
    import re

    text = re.sub(r"((?i:jdbc:)?(?i:postgres)[\w+.-]*:/+[^:/@\s'\"]*):[^\s'\"]*@", r"\1@", text)
    return re.sub(r"(\b(?:ssl)?password ?= ?)[^&\s'\"]*", r"\1...", text)
