"""How far a stream has read, as Spark keeps it: `{"orders": "12:4471"}`, a position for each topic. Pure.

The position is the last one that was read; `12:-1` stands before the first entry of ledger 12. Spark compares offsets
as text, so names are short where they can be, and sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storage.errors import InvalidPosition
from storage.values.names import full_topic_name, short_topic_name
from storage.values.position import Position


def written(read_through: Mapping[str, Position]) -> dict[str, str]:
    """The offset of positions by full topic name."""
    return dict(sorted((short_topic_name(topic), str(at)) for topic, at in read_through.items()))


def positions(offset: Mapping[str, Any]) -> dict[str, Position]:
    """The positions of an offset, by full topic name. Spark does not check what stands in a checkpoint.

    Raises:
        InvalidPosition, InvalidName
    """
    if not isinstance(offset, dict) or not all(isinstance(each, str) for each in offset.values()):
        raise InvalidPosition(
            f"the checkpoint holds {str(offset)[:80]}, which is no offset of this source",
            hint='An offset looks like {"orders": "12:4471"}; begin with a new checkpoint.',
        )
    return {full_topic_name(topic): Position.parse(text) for topic, text in offset.items()}
