"""The compaction of a topic: its settings, and the horizon and counters of its compacted view, in one record.

A topic without the record was never compacted and has no threshold. A view has a *generation*: what was written under
an earlier one are remains, which no reader meets, and which are removed in steps (`compacted_view.purge_step`).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from storage.disk.codec import key1, pack, unpack
from storage.disk.schema import COMPACTIONS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import TOMBSTONE_RETENTION_MS
from storage.values.position import Position, as_position


class CompactionState:
    """The record of one topic.

    Attributes:
        threshold: bytes of committed log behind the horizon from which on writers compact on their way; None: never.
        tombstone_ms: the time for which the view keeps a tombstone at least.
        generation: of the view; a truncation begins the next one.
        horizon: the view has every key up to here; None before the first compaction, and after a removal of the view.
        partial: messages of the entry behind the horizon that are in the view already.
        messages, bytes, tombstones: of the view.
        compacted_ms: the wall time of the last step; 0 before the first.
    """

    __slots__ = (
        "bytes", "compacted_ms", "generation", "horizon", "messages", "partial", "threshold", "tombstone_ms",
        "tombstones",
    )  # fmt: skip

    def __init__(self) -> None:
        self.threshold: int | None = None
        self.tombstone_ms = TOMBSTONE_RETENTION_MS
        self.generation = 1
        self.horizon: Position | None = None
        self.partial = 0
        self.messages = self.bytes = self.tombstones = self.compacted_ms = 0

    @property
    def has_view(self) -> bool:
        """Whether the topic was compacted: then originals behind the horizon are kept until they are compacted too."""
        return self.horizon is not None

    @property
    def begin(self) -> tuple[int, Position | None, int]:
        """The place at which the next step begins: generation, horizon, partial."""
        return self.generation, self.horizon, self.partial

    def restart(self, horizon: Position | None = None) -> None:
        """Begin an empty view; the records of the one before become remains.

        Args:
            horizon: the place from which on originals are kept until they are compacted; None keeps none.
        """
        self.generation += 1
        self.horizon, self.partial = horizon, 0
        self.messages = self.bytes = self.tombstones = self.compacted_ms = 0

    def encode(self) -> builtins.bytes:
        horizon = None if self.horizon is None else list(self.horizon)
        return pack(
            [
                self.threshold, self.tombstone_ms, self.generation, horizon, self.partial, self.messages, self.bytes,
                self.tombstones, self.compacted_ms,
            ]
        )  # fmt: skip

    @classmethod
    def decode(cls, payload: memoryview) -> CompactionState:
        state = cls()
        fields = unpack(payload, 9)
        state.threshold, state.tombstone_ms, state.generation, horizon, state.partial = fields[:5]
        state.messages, state.bytes, state.tombstones, state.compacted_ms = fields[5:9]
        state.horizon = None if horizon is None else as_position(horizon)
        return state


def load(view: ReadView, topic_id: int) -> CompactionState | None:
    """The compaction of a topic, shared by all code of a batch; None if the topic has none."""
    key = key1(topic_id)
    if not view.has_records(COMPACTIONS) and view.opened(COMPACTIONS, key) is None:
        return None
    return view.open(COMPACTIONS, key, CompactionState.decode)


def load_or_add(batch: WriteBatch, topic_id: int) -> CompactionState:
    """The compaction of a topic, in a record that the batch writes."""
    state = load(batch, topic_id)
    if state is None:
        state = CompactionState()
        batch.add(COMPACTIONS, key1(topic_id), state)
    return state


def forget(batch: WriteBatch, topic_id: int) -> None:
    """Remove the record of a topic that is deleted; its view goes in steps, with the entries."""
    if load(batch, topic_id) is not None:
        batch.remove(COMPACTIONS, key1(topic_id))


def topic_ids(view: ReadView) -> Iterator[int]:
    """The topics with a compaction, in the order of their ids."""
    return (
        (int.from_bytes(key, "big") for key in view.keys(COMPACTIONS))
        if view.has_records(COMPACTIONS)
        else iter(())
    )


def horizon(view: ReadView, topic_id: int) -> Position | None:
    """The horizon of a topic's view; None if there is no view."""
    state = load(view, topic_id)
    return None if state is None else state.horizon
