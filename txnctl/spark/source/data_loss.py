"""A start or a task inside messages that retention has removed: an error, or a warning that counts what is missing.

The option `failOnDataLoss` decides, for the plan of a batch, the offsets of a stream and the tasks of both.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from storage.errors import MessageNotFound
from storage.topic.other_lives import never_issued
from storage.values.names import short_topic_name
from storage.values.position import Position
from txnctl.spark.source.edges import PointWord, PublishTime

if TYPE_CHECKING:
    from storage.reports.extents import Extent
    from txnctl.spark.source.edges import TopicPoint

_LOG = logging.getLogger("txnctl.spark")


class DataLoss:
    """The answer to lost messages.

    Args:
        fails: whether lost messages are an error.
    """

    def __init__(self, fails: bool) -> None:
        self._fails = fails
        self._warned: set[tuple[str, str]] = set()

    def __getstate__(self) -> dict[str, object]:
        return vars(self)

    def check_start(self, extent: Extent, point: TopicPoint, *, in_view: bool = False) -> None:
        """Check that no message from the start of a read on was trimmed; `earliest` is the first one left.

        Args:
            in_view: whether the compacted view has what was trimmed.

        Raises:
            MessageNotFound: with `failOnDataLoss`.
        """
        if isinstance(point, PointWord):
            return
        if isinstance(point, PublishTime):
            last = extent.last_trimmed
            if not in_view and last is not None and last.newest_ms >= point.time_ms:
                self._report(extent, f"from {_time(point.time_ms)} on", extent.messages_trimmed)
            return
        start = Position(point[0], max(point[1], 0))
        self.check_issued(extent, start)
        if not in_view:
            self.check_after(extent, Position(start[0], start[1] - 1))

    def check_issued(self, extent: Extent, position: Position) -> None:
        """Check that a position is none that the topic never had: of another life of the store, or a former topic.

        Raises:
            MessageNotFound: with `failOnDataLoss`.
        """
        following = extent.first_after_other_life(position)
        if following is not None:
            self._fail(
                extent, str(position), never_issued(short_topic_name(extent.topic), position, following)
            )

    def check_after(self, extent: Extent, after: Position) -> None:
        """Check that no message after a position was trimmed.

        Raises:
            MessageNotFound: with `failOnDataLoss`.
        """
        if extent.has_lost(after):
            self._report(extent, f"after {after}", extent.lost_messages(after))

    def _report(self, extent: Extent, where: str, messages: int) -> None:
        first = Position(extent.before.ledger_id, 0)
        self._fail(extent, where, trimmed(extent.topic, where, first, messages))

    def _fail(self, extent: Extent, where: str, error: MessageNotFound) -> None:
        if self._fails:
            raise error
        if (extent.topic, where) not in self._warned:
            self._warned.add((extent.topic, where))
            _LOG.warning("%s; the read goes on there", error.message)


def trimmed(topic: str, where: str, first: Position, messages: int) -> MessageNotFound:
    """Return the error for messages that were removed by retention.

    Args:
        where: as in `after 3:4`.
        first: the first position left.
        messages: how many are missing, at most.
    """
    return MessageNotFound(
        f"messages of topic {short_topic_name(topic)} {where} were trimmed, at most {messages}; "
        f"the first one left is at {first}",
        hint=f"Start at earliest or {first}, a stream with a new checkpoint; or set failOnDataLoss to false, which "
        "goes on at the first one left. A subscription keeps messages until a stream has them.",
        topic=topic,
        first_position=str(first),
    )


def _time(time_ms: int) -> str:
    from storage.values.timestamps import rfc3339

    return rfc3339(time_ms) or f"{time_ms} ms"
