"""Positions and message ids: order and text form.

`Position` names an entry: `ledgerId:entryId`. Positions order by ledger, then by entry; `L:-1` comes before the first
entry of ledger L. `MessageId` names a message: its entry and, within a batch, its index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from storage.errors import InvalidPosition

_TEXT = re.compile(r"(0|[1-9][0-9]{0,17}):(-1|0|[1-9][0-9]{0,17})(?::(0|[1-9][0-9]{0,8}))?")


class Position(tuple[int, int]):
    """`(ledger_id, entry_id)`."""

    __slots__ = ()

    def __new__(cls, ledger_id: int, entry_id: int) -> Position:
        return tuple.__new__(cls, (ledger_id, entry_id))

    @property
    def ledger_id(self) -> int:
        return self[0]

    @property
    def entry_id(self) -> int:
        return self[1]

    def __str__(self) -> str:
        return f"{self[0]}:{self[1]}"

    def __repr__(self) -> str:
        return f"Position({self[0]}, {self[1]})"

    def __getnewargs__(self) -> tuple[int, int]:
        return (self[0], self[1])

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position written as `L:E`.

        Raises:
            InvalidPosition: the text has another form.
        """
        match = _TEXT.fullmatch(text)
        if match is None or match[3] is not None:
            raise InvalidPosition(
                f"{text[:80]!r} is not a position",
                hint="Write ledger:entry, such as 12:4471.",
                position=text[:80],
            )
        return cls(int(match[1]), int(match[2]))


as_position: Callable[[Iterable[int]], Position] = partial(tuple.__new__, Position)
"""Make a position of a pair of integers, as decoded from a record: half the time of `Position(...)`."""


class MessageId(tuple[int, int, int]):
    """`(ledger_id, entry_id, batch_index)`; the batch index is -1 where the entry holds a single message."""

    __slots__ = ()

    def __new__(cls, ledger_id: int, entry_id: int, batch_index: int = -1) -> MessageId:
        return tuple.__new__(cls, (ledger_id, entry_id, batch_index))

    @property
    def ledger_id(self) -> int:
        return self[0]

    @property
    def entry_id(self) -> int:
        return self[1]

    @property
    def batch_index(self) -> int:
        return self[2]

    @property
    def position(self) -> Position:
        return Position(self[0], self[1])

    def __str__(self) -> str:
        return f"{self[0]}:{self[1]}" if self[2] < 0 else f"{self[0]}:{self[1]}:{self[2]}"

    def __repr__(self) -> str:
        return f"MessageId({self[0]}, {self[1]}, {self[2]})"

    def __getnewargs__(self) -> tuple[int, int, int]:
        return (self[0], self[1], self[2])

    @classmethod
    def parse(cls, text: str) -> MessageId:
        """The message id written as `L:E` or `L:E:B`.

        Raises:
            InvalidPosition: the text has another form.
        """
        match = _TEXT.fullmatch(text)
        if match is None or match[2] == "-1":
            raise InvalidPosition(
                f"{text[:80]!r} is not a message id",
                hint="Write ledger:entry or ledger:entry:batchIndex, such as 12:4471 or 12:4471:3.",
                position=text[:80],
            )
        return cls(int(match[1]), int(match[2]), -1 if match[3] is None else int(match[3]))


as_message_id: Callable[[Iterable[int]], MessageId] = partial(tuple.__new__, MessageId)
"""Make a message id of three integers, like `as_position`."""


class LateMessageId:
    """The id of a message in the buffer of a transaction, known once the buffer is written.

    Any use of the id writes the buffer. A late id compares and hashes like the resolved `MessageId`, and every call
    that takes a `MessageId` takes a late id.
    """

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[], MessageId]) -> None:
        self._find = find

    @property
    def message_id(self) -> MessageId:
        """The `MessageId`, after writing the buffer if need be.

        Raises:
            TxnctlError: the message can no longer be written; see `Transaction.flush`.
        """
        return self._find()

    @property
    def ledger_id(self) -> int:
        return self.message_id.ledger_id

    @property
    def entry_id(self) -> int:
        return self.message_id.entry_id

    @property
    def batch_index(self) -> int:
        return self.message_id.batch_index

    @property
    def position(self) -> Position:
        return self.message_id.position

    def __str__(self) -> str:
        return str(self.message_id)

    def __repr__(self) -> str:
        return f"<LateMessageId at {id(self):#x}>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LateMessageId):
            return self is other or self.message_id == other.message_id
        return self.message_id == other if isinstance(other, MessageId) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.message_id)


class Extreme:
    """`earliest` or `latest`: a start which depends on the topic and the isolation level."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name.upper()


EARLIEST: Final = Extreme("earliest")
LATEST: Final = Extreme("latest")

Start = Position | MessageId | Extreme
"""The start of a reader or a new subscription: a position or message id is the first to be read."""


def message_id_of(value: object) -> MessageId:
    """Return a message id, given as such or as the id of a message in a buffer.

    Raises:
        InvalidPosition
    """
    if isinstance(value, LateMessageId):
        return value.message_id
    if isinstance(value, MessageId):
        return value
    raise InvalidPosition(
        f"{value!r} is neither a message nor a message id",
        hint="Give the message, its message_id, or MessageId.parse of a text.",
    )


def position_of(value: object) -> Position:
    """Return the position of an entry, given as a position or as the id of a message in the entry.

    Raises:
        InvalidPosition
    """
    if isinstance(value, MessageId | LateMessageId):
        return value.position
    if isinstance(value, tuple) and list(map(type, value)) == [int, int]:
        return Position(*value)
    raise InvalidPosition(f"{value!r} is not a position", hint="Give a Position or a MessageId.")


def start_of(value: object) -> Position | MessageId | Extreme:
    """Return a start given as a value or as text.

    Raises:
        InvalidPosition
    """
    if isinstance(value, LateMessageId):
        return value.message_id
    if isinstance(value, Position | MessageId | Extreme):
        return value
    if isinstance(value, str):
        return parse_start(value)
    raise InvalidPosition(
        f"{value!r} is not a position", hint="Give EARLIEST, LATEST, a Position or a MessageId."
    )


def parse_start(text: str) -> Position | MessageId | Extreme:
    """`earliest`, `latest`, `L:E` or `L:E:B`.

    Raises:
        InvalidPosition: the text has another form.
    """
    if text == "earliest":
        return EARLIEST
    if text == "latest":
        return LATEST
    try:
        message_id = MessageId.parse(text)
    except InvalidPosition:
        raise InvalidPosition(
            f"{text[:80]!r} is not a position",
            hint="Write earliest, latest, ledger:entry or ledger:entry:batchIndex, such as 12:4471.",
            position=text[:80],
        ) from None
    return message_id if message_id.batch_index >= 0 else message_id.position
