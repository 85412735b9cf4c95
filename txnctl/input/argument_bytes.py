"""The bytes of an argument, as the system gave them."""

from __future__ import annotations

from storage.errors import InvalidValue


def argument_bytes(text: str, name: str) -> bytes:
    """The bytes of an argument. A system gives any bytes; a program that calls the command may give any text.

    Args:
        name: of the argument, for the error.

    Raises:
        InvalidValue: a half of a surrogate pair, which is no character.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{name} has a half of a surrogate pair at character {error.start}, which is no text",
            hint="Give bytes that are no text as Base64, where the command takes it.",
        ) from None
