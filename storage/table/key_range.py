"""A range of keys: from one key on, below another, in one direction. Pure."""

from __future__ import annotations

from storage.errors import InvalidValue
from storage.limits import TABLE_KEY_BYTES_MAX


class KeyRange:
    """Keys at or above `start` and below `end` (None: to the end of the table).

    Attributes:
        walked: of the rest of a whole table: the commit that all rows so far were read from, and their number; None of
            every other range, and where the commit changed between two pages.
    """

    __slots__ = ("end", "reverse", "start", "walked")

    def __init__(self, start: bytes, end: bytes | None, reverse: bool) -> None:
        self.start = start
        self.end = end
        self.reverse = reverse
        self.walked: tuple[int, int] | None = None

    @classmethod
    def of(cls, prefix: bytes, start: bytes | None, end: bytes | None, reverse: bool) -> KeyRange:
        """The keys with a prefix that are also at or above `start` and below `end`.

        Raises:
            InvalidValue
        """
        for bound in (prefix, start, end):
            if bound is not None and type(bound) is not bytes:
                raise InvalidValue(f"a bound of keys is bytes, not {type(bound).__name__}")
        low = max(_within_keys(prefix), _within_keys(start or b""))
        high = after_prefix(_within_keys(prefix))
        if end is not None:
            end = _within_keys(end)
            high = end if high is None else min(high, end)
        return cls(low, high, reverse)

    @property
    def is_empty(self) -> bool:
        return self.end is not None and self.start >= self.end

    @property
    def is_whole(self) -> bool:
        """Whether the range is a whole table."""
        return not self.start and self.end is None

    def after(self, key: bytes) -> KeyRange:
        """The rest of the range after reading up to and including a key."""
        if self.reverse:
            return KeyRange(self.start, key, True)
        return KeyRange(key + b"\0", self.end, False)

    def without(self, rest: KeyRange | None) -> KeyRange:
        """The part of the range that was read when `rest` is left; the whole range if None."""
        if rest is None:
            return self
        if self.reverse:
            return KeyRange(rest.end or b"", self.end, True)
        return KeyRange(self.start, rest.start, False)

    def has(self, key: bytes) -> bool:
        return key >= self.start and (self.end is None or key < self.end)


def _within_keys(bound: bytes) -> bytes:
    """Truncate an over-long bound. Keys have at most 400 bytes, so comparing them with the first 400 bytes of the bound
    plus a zero byte gives the same order.
    """
    if len(bound) <= TABLE_KEY_BYTES_MAX:
        return bound
    return bound[:TABLE_KEY_BYTES_MAX] + b"\0"


def after_prefix(prefix: bytes) -> bytes | None:
    """The first key after all keys that begin with `prefix`; None if there is none (`ff ff`)."""
    short = prefix.rstrip(b"\xff")
    return short[:-1] + bytes((short[-1] + 1,)) if short else None
