"""Keys on the command line: the bytes of the argument, or Base64 for bytes that no shell can type."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.decorators import option
from txnctl.input.argument_bytes import argument_bytes

with_base64 = option(
    "--key-base64", "is_base64", is_flag=True, help="KEY is Base64, as `keyBase64` in JSON; for any bytes."
)


def key_of(text: str, *, is_base64: bool, name: str = "KEY") -> bytes:
    """The bytes of a key.

    Args:
        name: the name of the argument, for the error.

    Raises:
        InvalidValue: the text is not Base64, or no text.
    """
    data = argument_bytes(text, name)
    if not is_base64:
        return data
    from binascii import Error as NotBase64, a2b_base64

    try:
        return a2b_base64(data, strict_mode=True)
    except NotBase64:
        raise InvalidValue(
            f"{name}: {text[:80]!r} is not Base64", hint="Leave out --key-base64 if it is the key itself."
        ) from None


def shown_key(key: bytes) -> str:
    """A key inside a sentence."""
    from txnctl.output.bytes_field import shown_bytes

    return shown_bytes(key)
