"""The keys that a read selects: single keys, or a range. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from storage.errors import InvalidValue
from storage.table.key_range import after_prefix
from txnctl.input.names_once import named_once

OPTIONS: Final = ("keys", "keyFrom", "keyUntil", "keyPrefix")


@dataclass(frozen=True, slots=True)
class KeySelection:
    """Selected keys; without any restriction also messages that have no key.

    Attributes:
        keys: single keys, all in the range; None for all keys of the range.
        start: the lowest key.
        end: the key after the highest one, excluded; None for no bound.
        takes_null: whether messages without a key are selected.
    """

    keys: frozenset[bytes] | None = None
    start: bytes = b""
    end: bytes | None = None
    takes_null: bool = True

    @property
    def is_all(self) -> bool:
        """Whether everything is selected."""
        return self.takes_null

    @property
    def is_empty(self) -> bool:
        """Whether no key can be selected."""
        if self.takes_null:
            return False
        return self.keys == frozenset() or (self.end is not None and self.start >= self.end)

    def has(self, key: bytes | None) -> bool:
        """Report whether a key, or no key, is selected."""
        if self.takes_null:
            return True
        if key is None:
            return False
        if self.keys is not None:
            return key in self.keys
        return key >= self.start and (self.end is None or key < self.end)

    def one_of(self, keys: frozenset[bytes]) -> KeySelection:
        """Select the keys of a set that were selected so far."""
        return KeySelection(frozenset(filter(self.has, keys)), self.start, self.end, False)

    def within(self, start: bytes, end: bytes | None) -> KeySelection:
        """Select the keys from `start` on and below `end` that were selected so far."""
        low = max(self.start, start)
        high = self.end if end is None else end if self.end is None else min(self.end, end)
        ranged = KeySelection(None, low, high, False)
        return ranged if self.keys is None else ranged.one_of(self.keys)

    def indexes(self, keys: Sequence[bytes | None], start: int, stop: int) -> list[int]:
        """Return the indexes from `start` to before `stop` whose keys are selected."""
        if self.takes_null:
            return list(range(start, stop))
        if self.keys is not None:
            chosen = self.keys
            return [index for index in range(start, stop) if keys[index] in chosen]
        return [index for index in range(start, stop) if self.has(keys[index])]


ALL_KEYS: Final = KeySelection()


def parse_keys(options: Mapping[str, str]) -> KeySelection:
    """Parse the options of keys, `keys`, `keyFrom`, `keyUntil` and `keyPrefix`, which hold together.

    Raises:
        InvalidValue
    """
    selection = ALL_KEYS
    if "keyPrefix" in options:
        prefix = _key("keyPrefix", options["keyPrefix"])
        selection = selection.within(prefix, after_prefix(prefix))
    if "keyFrom" in options or "keyUntil" in options:
        until = options.get("keyUntil")
        selection = selection.within(
            _key("keyFrom", options.get("keyFrom", "")), None if until is None else _key("keyUntil", until)
        )
    if "keys" in options:
        selection = selection.one_of(frozenset(_keys(options["keys"])))
    return selection


def _keys(text: str) -> list[bytes]:
    """Parse a list of keys: with commas, or a JSON array of texts and of `{"base64": "..."}`."""
    if not text.lstrip().startswith("["):
        return [_key("keys", key) for key in text.split(",")]
    items = _json("keys", text)
    if not isinstance(items, list) or not all(isinstance(item, str | dict) for item in items):
        raise InvalidValue(
            f"keys {text[:80]!r} is no JSON array of keys",
            hint='Write keys with commas between them, or as ["B1", "B2", {"base64": "/w=="}].',
        )
    return [_text("keys", item) if isinstance(item, str) else _base64("keys", item) for item in items]


def _key(name: str, text: str) -> bytes:
    return _base64(name, _json(name, text)) if text.startswith('{"base64"') else _text(name, text)


def _text(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{name} {text[:80]!r} is not text", hint='Write {"base64": "..."}.') from None


def _base64(name: str, given: object) -> bytes:
    from base64 import b64decode

    text = given.get("base64") if isinstance(given, dict) and len(given) == 1 else None
    try:
        return b64decode(text if isinstance(text, str) else "-", validate=True)
    except ValueError:
        raise InvalidValue(
            f"{name} has a key that is not Base64", hint='Write it as {"base64": "/w=="}.'
        ) from None


def _json(name: str, text: str) -> object:
    import json

    try:
        parsed: object = json.loads(text, object_pairs_hook=partial(named_once, place=f"{name}: "))
    except (ValueError, RecursionError):
        return None
    return parsed
