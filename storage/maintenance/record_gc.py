"""Collect records that grow with names: sequence ids of producers long gone, and names of topics long deleted.

Finding takes views, removing takes store transactions of bounded size; after a kill the next run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from storage.disk import wall_clock
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.maintenance.table_gc import remove_in_steps
from storage.topic import former_topics, sequence_retention
from storage.topic.sequence_retention import Expiry, KeptMessages
from storage.values.named_tuple import NamedTuple


class Forgotten(NamedTuple):
    """Ranges of sequence ids, and names of deleted topics, whose records went."""

    sequence_ranges_forgotten: int
    topic_names_forgotten: int


def forecast(
    connection: Connection, kept: Mapping[int, KeptMessages], trust_clock: bool = False
) -> Forgotten:
    """The result that `collect` would have now, from one view.

    Args:
        kept: by the id of a topic, the messages that the trimming of the same run will leave.
    """

    def kept_of(view: ReadView, topic_id: int) -> KeptMessages:
        return kept.get(topic_id) or KeptMessages.load(view, topic_id)

    with connection.view() as view:
        # `collect` starts a clock that stands after a reboot, and from then on the clocks agree.
        trust_clock = trust_clock or not view.is_clock_running
        ranges = sequence_retention.forecast(view, Expiry.by_setting(view, trust_clock), kept_of)
        is_trusted = trust_clock or wall_clock.clocks_agree(view)
        return Forgotten(ranges, former_topics.forecast(view) if is_trusted else 0)


def collect(connection: Connection) -> Forgotten:
    """Forget what is old enough; nothing while the clocks disagree."""
    with connection.view() as view:
        expiry, is_trusted = Expiry.by_setting(view), wall_clock.clocks_agree(view)
    if not is_trusted:
        return Forgotten(0, 0)
    ranges = remove_in_steps(
        connection,
        partial(sequence_retention.find_old, expiry=expiry),
        partial(sequence_retention.expire, expiry=expiry),
    )
    return Forgotten(ranges, remove_in_steps(connection, former_topics.find_old, former_topics.fold))
