"""A slice of an entry: some neighbouring messages of one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from storage.topic.entry import Entry


class EntrySlice(NamedTuple):
    """Messages `start` to `stop` of an entry, stop excluded."""

    entry: Entry
    start: int
    stop: int
