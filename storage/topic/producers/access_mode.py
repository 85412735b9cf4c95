"""Who may produce to a topic: the access modes of PIP-68 and what asking for one comes to. Pure.

The decision table is semantics.md section 6, its rows tried from the top. *Someone* is a connected producer or a
waiting one. *Busy* means: somebody else has it. *Fenced* means: you had it, or waited for it, and lost it, for ever.
"""

from __future__ import annotations

from enum import Enum


class AccessMode(Enum):
    """What a producer asks of a topic; the values are Pulsar's words."""

    SHARED = "Shared"
    EXCLUSIVE = "Exclusive"
    WAIT_FOR_EXCLUSIVE = "WaitForExclusive"
    EXCLUSIVE_WITH_FENCING = "ExclusiveWithFencing"

    @property
    def waits(self) -> bool:
        """It waits for its turn where another mode would be refused."""
        return self is AccessMode.WAIT_FOR_EXCLUSIVE

    @property
    def is_exclusive(self) -> bool:
        """Any mode but Shared: it wants the topic for itself."""
        return self is not AccessMode.SHARED


class Answer(Enum):
    """What asking comes to."""

    JOIN = "connects"
    """A Shared producer among others, under the epoch there is."""
    OWN = "owns"
    """ProcessIdentity under a new epoch."""
    RESUME = "resumes"
    """ProcessIdentity again under its own epoch: nobody took over, nobody else produced."""
    TAKE_OVER = "takes over"
    """Everybody is evicted, waiting ones too; owner under a new epoch."""
    WAIT = "waits"
    BUSY = "busy"
    FENCED = "fenced"
    UNKNOWN_EPOCH = "unknown epoch"
    """An epoch that the topic never had."""


def judge(
    mode: AccessMode,
    *,
    epoch: int,
    brings: int | None,
    may_resume: bool | None,
    is_owned: bool,
    connected: int,
    waiting: int,
) -> Answer:
    """What a producer that asks for `mode` gets.

    Args:
        epoch: the topic's; -1 while it is absent.
        brings: the epoch under which it was connected before; None for a new one.
        may_resume: whether it is the last owner and nobody else has produced since; None if it does not say who it was.
        is_owned: an exclusive producer is connected.
        connected, waiting: living producers.
    """
    if mode.is_exclusive and brings is not None and brings != epoch:
        return Answer.UNKNOWN_EPOCH if brings > epoch else Answer.FENCED
    if mode.is_exclusive and may_resume is False:
        return Answer.FENCED
    if not mode.is_exclusive:
        return Answer.BUSY if is_owned or waiting else Answer.JOIN
    if connected or waiting:
        return {
            AccessMode.EXCLUSIVE: Answer.BUSY,
            AccessMode.WAIT_FOR_EXCLUSIVE: Answer.WAIT,
            AccessMode.EXCLUSIVE_WITH_FENCING: Answer.TAKE_OVER,
        }[mode]
    return Answer.RESUME if may_resume else Answer.OWN
