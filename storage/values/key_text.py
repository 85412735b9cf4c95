"""Keys of tables in messages and reports of the engine."""

from __future__ import annotations


def key_text(key: bytes) -> str:
    r"""UTF-8 as text, further bytes as `\xff`, control characters written out: as commands show keys."""
    text = key.decode("utf-8", "backslashreplace")
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    )
