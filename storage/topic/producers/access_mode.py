"""Access modes of PIP-68, and the decision whether a producer may publish to a topic. Pure.

The decision table is semantics.md section 6; its rows are tried from the top. *Busy*: different producers have the
topic now. *Fenced*: the producer had the topic, or waited for the topic, and lost it for ever.
"""

from __future__ import annotations

from enum import Enum


class AccessMode(Enum):
    """The access that a producer asks for; the values are Pulsar's words."""

    SHARED = "Shared"
    EXCLUSIVE = "Exclusive"
    WAIT_FOR_EXCLUSIVE = "WaitForExclusive"
    EXCLUSIVE_WITH_FENCING = "ExclusiveWithFencing"

    @property
    def waits(self) -> bool:
        """Whether a producer of this mode waits for a turn, where the rest of the modes would be refused."""
        return self is AccessMode.WAIT_FOR_EXCLUSIVE

    @property
    def is_exclusive(self) -> bool:
        """Whether the mode asks for the topic without company: every mode but Shared."""
        return self is not AccessMode.SHARED


class Answer(Enum):
    """The decision on a producer that asks for access."""

    JOIN = "connects"
    """Connect a Shared producer under the present epoch."""
    OWN = "owns"
    """Make the producer the owner under a new epoch."""
    RESUME = "resumes"
    """Make the last owner the owner again, under the same epoch: no producer took over or published meanwhile."""
    TAKE_OVER = "takes over"
    """Evict all producers, waiting ones too, and make the producer the owner under a new epoch."""
    WAIT = "waits"
    BUSY = "busy"
    FENCED = "fenced"
    UNKNOWN_EPOCH = "unknown epoch"
    """The producer names an epoch that the topic never had."""


class Occupancy:
    """The living producers of a topic, counted.

    Attributes:
        is_owned: whether an exclusive producer is connected.
        connected, waiting: numbers of producers.
    """

    __slots__ = ("connected", "is_owned", "waiting")

    def __init__(self, is_owned: bool, connected: int, waiting: int) -> None:
        self.is_owned = is_owned
        self.connected = connected
        self.waiting = waiting


def judge_access(
    mode: AccessMode, *, epoch: int, brings: int | None, may_resume: bool | None, occupancy: Occupancy
) -> Answer:
    """Decide on a producer that asks for `mode`.

    Args:
        epoch: the topic's epoch; -1 while absent.
        brings: the epoch under which the producer was connected before; None for a new producer.
        may_resume: whether the producer is the last owner and no publish through a different session followed; None
            if the producer names no session.
    """
    if mode.is_exclusive and brings is not None and brings != epoch:
        return Answer.UNKNOWN_EPOCH if brings > epoch else Answer.FENCED
    if mode.is_exclusive and may_resume is False:
        return Answer.FENCED
    if not mode.is_exclusive:
        return Answer.BUSY if occupancy.is_owned or occupancy.waiting else Answer.JOIN
    if occupancy.connected or occupancy.waiting:
        return {
            AccessMode.EXCLUSIVE: Answer.BUSY,
            AccessMode.WAIT_FOR_EXCLUSIVE: Answer.WAIT,
            AccessMode.EXCLUSIVE_WITH_FENCING: Answer.TAKE_OVER,
        }[mode]
    return Answer.RESUME if may_resume else Answer.OWN
