"""A line of NDJSON as an object, and the bytes inside: the inverse of `bytes_field` and `json_text`."""

from __future__ import annotations

from binascii import Error as NotBase64, a2b_base64
from json import JSONDecodeError, JSONDecoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_scan = JSONDecoder().raw_decode


class Unreadable(Exception):
    """The reason why a line is no object."""


def read_object(line: bytes) -> dict[str, object] | None:
    """The object on a line; None where the line is empty."""
    try:
        text = line.decode().strip(" \t\r\n")
        if not text:
            return None
        parsed, end = _scan(text, 0)
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None
    except JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"not JSON: {error}") from None
    if end != len(text):
        raise Unreadable(f"more follows the JSON value, at character {end + 1}")
    if type(parsed) is not dict:
        raise Unreadable("not a JSON object")
    return parsed


def read_bytes(fields: Mapping[str, object], name: str, *, needed: bool = False) -> bytes | None:
    """The bytes of `value` or `key`, given as text or as Base64."""
    encoded = fields.get(f"{name}Base64")
    if encoded is None:
        text = fields.get(name)
        if text is None:
            if needed and name not in fields:
                raise Unreadable(f'neither "{name}" nor "{name}Base64" is there')
            return None
        if type(text) is not str:
            raise Unreadable(f'"{name}" is not text')
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise Unreadable(f'"{name}" holds half of a surrogate pair') from None
    if name in fields:
        raise Unreadable(f'both "{name}" and "{name}Base64" are there')
    try:
        if type(encoded) is str:
            return a2b_base64(encoded, strict_mode=True)
    except (NotBase64, ValueError):
        pass
    raise Unreadable(f'"{name}Base64" is not Base64')
