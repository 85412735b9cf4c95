"""The form of a store's name: the path of a directory, or the URL of a server."""

from __future__ import annotations

_SCHEMES = ("postgresql://", "postgres://")


def is_url(name: str) -> bool:
    """Whether a store is named by the URL of a server."""
    return name.startswith(_SCHEMES)


def without_passwords(text: str) -> str:
    """A text without the passwords of the URLs in it."""
    if "://" not in text:
        return text
    import re

    text = re.sub(r"(postgres(?:ql)?://[^:/@\s'\"]*):[^\s'\"]*@", r"\1@", text)
    return re.sub(r"([?&](?:ssl)?password=)[^&\s'\"]*", r"\1...", text)
