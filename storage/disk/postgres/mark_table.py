"""The marks of received messages, and the counters of events, of a store on a server: tables that a crash empties."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from storage.disk.counters import BOUNDS_NS, NO_COUNTS, Counters
from storage.disk.postgres.binary import as_int, int4_array, int8, int8_array
from storage.disk.postgres.layout import COUNT_EVENTS, COUNTED, MARK, MARK_QUIET, MARKED
from storage.disk.postgres.session import Row, Session, Step
from storage.disk.superblock import Superblock
from storage.values.counters import COUNTERS
from storage.values.position import MessageId

_DURATION: Final = COUNTERS
_FIRST_BUCKET: Final = COUNTERS + 1
_SINCE: Final = -1
_SEND_NS: Final = 250_000_000

OpenSession = Callable[[], AbstractContextManager[Session]]


class MarkTable:
    """The marks of one store in one process; each call is one round trip."""

    __slots__ = ("_session",)

    def __init__(self, session: OpenSession) -> None:
        self._session = session

    def prepare(self, superblock: Superblock) -> bool:  # noqa: ARG002
        return True

    def note(self, consumer_id: int, window: int, last: MessageId) -> None:
        values = (consumer_id, window, *last)
        with self._session() as session:
            session.run_steps(((MARK, [int8(value) for value in values]),))

    def last(self, superblock: Superblock, consumer_id: int, window: int) -> MessageId | None:  # noqa: ARG002
        row = self._row(consumer_id)
        if row is None or row[0] is None or as_int(row[0]) != window:
            return None
        return MessageId(as_int(row[1]), as_int(row[2]), as_int(row[3]))

    def note_quiet(self, consumer_id: int, since_ns: int) -> None:
        with self._session() as session:
            session.run_steps(((MARK_QUIET, (int8(consumer_id), int8(since_ns))),))

    def quiet_since_ns(self, superblock: Superblock, consumer_id: int) -> int | None:  # noqa: ARG002
        row = self._row(consumer_id)
        return None if row is None or row[4] is None else as_int(row[4])

    def _row(self, consumer_id: int) -> Row | None:
        with self._session() as session:
            (rows,) = session.run_steps(((MARKED, (int8(consumer_id),)),))
        return rows[0] if rows else None


class EventTally:
    """Events and durations that this process has counted and not sent: one commit in a quarter of a second takes them.

    A process that is killed loses the counts of that time, and no more.
    """

    __slots__ = ("_counted", "_due_ns")

    def __init__(self) -> None:
        self._counted: dict[int, int] = {}
        self._due_ns = 0

    @property
    def is_empty(self) -> bool:
        return not self._counted

    def is_due(self, now_ns: int) -> bool:
        """Whether the counts are to be sent now."""
        return now_ns >= self._due_ns

    def note(self, events: Sequence[int], duration_ns: int) -> None:
        """Count the events of a batch, and the duration of its commit up to its end."""
        counted = self._counted
        bucket = _FIRST_BUCKET + bisect_left(BOUNDS_NS, duration_ns)
        counted[_DURATION] = counted.get(_DURATION, 0) + duration_ns
        counted[bucket] = counted.get(bucket, 0) + 1
        for counter, number in enumerate(events):
            if number:
                counted[counter] = counted.get(counter, 0) + number

    def step(self, now_ns: int) -> Step:
        """The step that adds the counts to those of the store."""
        counted, self._counted = self._counted, {}
        self._due_ns = now_ns + _SEND_NS
        return COUNT_EVENTS, (int4_array(list(counted)), int8_array(list(counted.values())))


def read_counters(session: Session) -> Counters:
    """The counters as of now; zeros where nothing was counted since a crash of the server."""
    (rows,) = session.run_steps(((COUNTED, ()),))
    counted = {as_int(counter): as_int(number) for counter, number in rows}
    if not counted:
        return NO_COUNTS
    buckets = range(_FIRST_BUCKET, _FIRST_BUCKET + len(BOUNDS_NS) + 1)
    return Counters(
        counted.get(_SINCE, 0), tuple(counted.get(counter, 0) for counter in range(COUNTERS)),
        counted.get(_DURATION, 0), tuple(counted.get(bucket, 0) for bucket in buckets),
    )  # fmt: skip
