"""Offsets of a stream as Spark stores an offset: `{"orders": "12:4471"}`, a position for each topic. Pure.

The position is the last one read; `12:-1` stands before the first entry of ledger 12. Spark compares offsets as text,
so topic names are shortened where possible, and sorted.
"""

from __future__ import annotations

from collections.abc import Mapping

from storage.errors import InvalidPosition
from storage.values.names import full_topic_name, short_topic_name
from storage.values.position import Position


def offset_of(read_through: Mapping[str, Position]) -> dict[str, str]:
    """Return the offset of positions by full topic name."""
    return dict(sorted((short_topic_name(topic), str(at)) for topic, at in read_through.items()))


def parse_offset(offset: object) -> dict[str, Position]:
    """Parse an offset into positions by full topic name. Spark does not check the contents of a checkpoint.

    Raises:
        InvalidPosition, InvalidName
    """
    if not isinstance(offset, dict) or not all(isinstance(text, str) for text in offset.values()):
        raise InvalidPosition(
            f"the checkpoint holds {str(offset)[:80]}, not an offset of this source",
            hint='An offset looks like {"orders": "12:4471"}; begin with a new checkpoint.',
        )
    return {full_topic_name(topic): Position.parse(text) for topic, text in offset.items()}
