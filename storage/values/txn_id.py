"""Transaction ids: `most:least`. `most` is the id of the coordinator, always 0; `least` is a sequence number."""

from __future__ import annotations

import re

from storage.errors import InvalidTxnId

_TEXT = re.compile(r"\((0), ?([1-9][0-9]{0,17})\)|(?:(0):)?([1-9][0-9]{0,17})")


class TxnID(tuple[int, int]):
    """`(most, least)`. On disk a transaction id is `least` alone, 0 meaning none."""

    __slots__ = ()

    def __new__(cls, least: int, most: int = 0) -> TxnID:
        return tuple.__new__(cls, (most, least))

    @property
    def most(self) -> int:
        return self[0]

    @property
    def least(self) -> int:
        return self[1]

    def __str__(self) -> str:
        return f"{self[0]}:{self[1]}"

    def __repr__(self) -> str:
        return f"TxnID({self[1]})"

    def __getnewargs__(self) -> tuple[int, int]:
        return (self[1], self[0])

    @classmethod
    def parse(cls, text: str) -> TxnID:
        """The id written as `0:42`, `(0,42)` or `42`.

        Raises:
            InvalidTxnId: the text has another form.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise InvalidTxnId(
                f"{text[:80]!r} is not a transaction id", hint="Write 0:42, (0,42) or 42.", id=text[:80]
            )
        return cls(int(match[2] or match[4]))
