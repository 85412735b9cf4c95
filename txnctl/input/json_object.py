"""A line of NDJSON as an object, and the bytes inside: the inverse of `bytes_field` and `json_text`."""

from __future__ import annotations

from binascii import Error as NotBase64, a2b_base64
from json import JSONDecodeError, JSONDecoder

from storage.errors import InvalidValue
from txnctl.input.names_once import named_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_scan = JSONDecoder(object_pairs_hook=named_once).raw_decode


class Unreadable(Exception):
    """The reason why a line is no object, and after it the place in the line."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason + place)
        self.reason = reason
        self.place = place


def read_object(
    line: bytes, scan: Callable[[str, int], tuple[object, int]] = _scan
) -> dict[str, object] | None:
    """The object on a line, by the scanner of a decoder; None where the line is empty."""
    try:
        text = line.decode().strip(" \t\r\n")
        if not text:
            return None
        parsed, end = scan(text, 0)
    except UnicodeDecodeError as error:
        raise Unreadable("not UTF-8", f" at byte {error.start}") from None
    except JSONDecodeError as error:
        raise Unreadable("not JSON", f": {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except InvalidValue as error:
        raise Unreadable(error.message) from None
    except ValueError as error:
        raise Unreadable("not JSON", f": {error}") from None
    if end != len(text):
        raise Unreadable("more follows the JSON value", f", at character {end + 1}")
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
