"""Sets of the messages of one entry, by batch index. Pure.

In memory a set is an integer whose bit i stands for message i; on disk the same integer, big-endian. Empty bytes stand
for all messages of the entry, regardless of the number.
"""

from __future__ import annotations

from itertools import compress

from storage.errors import CorruptStore

_AS_NUMBERS = bytes.maketrans(b"01", b"\x00\x01")

ALL = b""
"""Every message of the entry, on disk."""


def everything(count: int) -> int:
    """The set of all messages of an entry that has `count` messages."""
    return (1 << count) - 1


def encode(messages: int, count: int) -> bytes:
    r"""Encode a set as bytes; ALL for the whole entry.

    >>> encode(0b111, 3), encode(0b101, 3)
    (b'', b'\x05')
    """
    assert 0 < messages <= everything(count), "a stored set is not empty and lies within its entry"
    if messages == everything(count):
        return ALL
    return messages.to_bytes((messages.bit_length() + 7) // 8, "big")


def decode(data: bytes | memoryview, count: int) -> int:
    """Decode a set of an entry that has `count` messages.

    Raises:
        CorruptStore: the set is empty, or has messages that the entry does not have.
    """
    if not data:
        return everything(count)
    messages = int.from_bytes(data, "big")
    if not 0 < messages <= everything(count):
        raise CorruptStore(f"it is no set of messages of an entry with {count}")
    return messages


def has_all(data: bytes | memoryview, messages: int) -> bool:
    r"""Whether a stored set has all of these messages, for a caller that does not know the number of the entry.

    >>> has_all(b"\x05", 0b100), has_all(b"\x05", 0b110), has_all(ALL, 0b110)
    (True, False, True)
    """
    return not data or not messages & ~int.from_bytes(data, "big")


def has_any(data: bytes | memoryview, messages: int) -> bool:
    r"""Whether a stored set has any of these messages, for a caller that does not know the number of the entry.

    >>> has_any(b"\x05", 0b110), has_any(b"\x05", 0b010), has_any(ALL, 0b010)
    (True, False, True)
    """
    return not data or bool(messages & int.from_bytes(data, "big"))


def through(index: int) -> int:
    """The set of messages 0 to index."""
    return (1 << (index + 1)) - 1


def lowest(messages: int, limit: int) -> int:
    """The first `limit` messages of a set.

    >>> bin(lowest(0b101101, 2))
    '0b101'
    """
    if messages.bit_count() <= limit:
        return messages
    kept = 0
    for _ in range(limit):
        bit = messages & -messages
        kept |= bit
        messages ^= bit
    return kept


def indexes(messages: int) -> list[int]:
    """The batch indexes of a set, in order.

    >>> indexes(0b101101)
    [0, 2, 3, 5]
    """
    # Digits are examined at the machine's speed; each shift of an integer of a thousand bits would copy the integer.
    digits = f"{messages:b}".encode()[::-1].translate(_AS_NUMBERS)
    return list(compress(range(len(digits)), digits))
