"""Forget the sequence ids of producer names that are long gone.

A range of ids goes once its messages are trimmed and its latest use is older than the retention of sequence ids, a
setting of the store. The highest range of a producer name goes last, so that the ids of a name go on counting as long
as one of them is kept. A message that is sent again with a forgotten id counts anew: invariant 20 holds for the ids of
messages that are kept, and for the retention after the last use.

Finding takes views, removing takes store transactions of bounded size, which decide again. A range of format 1 has no
note of its use: it counts as used when it is first met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from storage.disk.codec import U64, key1, pack, unpack_first
from storage.disk.schema import HEADS, SEQUENCES, STORE
from storage.disk.view import ReadView, WriteBatch
from storage.disk.wall_clock import clocks_agree
from storage.errors import InvalidValue
from storage.limits import (
    GC_LOOK_RECORDS,
    GC_STEP_RECORDS,
    SEQUENCE_RETENTION_MS,
    SEQUENCE_RETENTION_MS_MAX,
    SEQUENCE_RETENTION_MS_MIN,
)
from storage.topic import state as states
from storage.topic.open_topic import OpenTopic
from storage.topic.sequence_ids import LastUse, UsedRange
from storage.values.durations import duration_text, given_duration
from storage.values.named_tuple import NamedTuple

_KEY: Final = b"sequence-retention"
UNSET: Final = "unset"


class KeptMessages(NamedTuple):
    """The first ledger of a topic, whether messages were trimmed, and whether no message is left."""

    first_ledger: int
    is_trimmed: bool
    is_empty: bool

    @classmethod
    def load(cls, view: ReadView, topic_id: int) -> KeptMessages:
        """The messages that a topic has now."""
        state = states.load(view, topic_id)
        return cls(state.first_ledger, state.messages_trimmed > 0, state.messages_trimmed == state.messages)


KeptOf = Callable[[ReadView, int], KeptMessages]
"""The messages that a topic has, or will have, by its id."""


class Expiry(NamedTuple):
    """The wall time in ms before which a range must have been used last; None forgets nothing."""

    before_ms: int | None

    @classmethod
    def by_setting(cls, view: ReadView, trust_clock: bool = False) -> Expiry:
        """By the setting of the store; nothing goes for its age while the clocks disagree."""
        kept_ms = retention_ms(view)
        if kept_ms is None or not (trust_clock or clocks_agree(view)):
            return cls(None)
        return cls(view.clock.wall_ms() - kept_ms)

    def lets_go(self, kept: KeptMessages, used: UsedRange) -> bool:
        """Whether the messages of a range are trimmed, and its latest use is long ago."""
        if self.before_ms is None or used.txn or used.used is None or used.used.at_ms > self.before_ms:
            return False
        # A message may be in the ledger after the one that was open before it.
        return kept.is_empty or used.used.ledger_id + 1 < kept.first_ledger


def retention_ms(view: ReadView) -> int | None:
    """The ms for which sequence ids of trimmed messages are kept after their last use; None for ever."""
    payload = view.get(STORE, _KEY)
    return SEQUENCE_RETENTION_MS if payload is None else unpack_first(payload, 1)[0]


def set_retention(batch: WriteBatch, asked: int | str) -> int | None:
    """Set the retention to ms, or to `unset`; return the value.

    Raises:
        InvalidValue
    """
    is_time = type(asked) is int and SEQUENCE_RETENTION_MS_MIN <= asked <= SEQUENCE_RETENTION_MS_MAX
    if not is_time and asked != UNSET:
        raise InvalidValue(
            f"sequence ids are kept for {duration_text(SEQUENCE_RETENTION_MS_MIN)} to "
            f"{duration_text(SEQUENCE_RETENTION_MS_MAX)}, or {UNSET}, not {given_duration(asked)}",
            hint="A message that is sent again after that time counts anew.",
        )
    kept = None if asked == UNSET else int(asked)
    batch.put(STORE, _KEY, pack([kept]))
    return kept


def find_old(
    view: ReadView, after: bytes, expiry: Expiry, look: int = GC_LOOK_RECORDS
) -> tuple[list[bytes], bytes | None]:
    """Find ranges that may go, or have no note of their use, from a key on; and the key to go on from.

    Args:
        look: records to look at.
    """
    keys: list[bytes] = []
    for seen, (key, is_due) in enumerate(_every(view, after, expiry)):
        if seen >= look or len(keys) >= GC_STEP_RECORDS:
            return keys, key
        if is_due:
            keys.append(key)
    return keys, None


def forecast(view: ReadView, expiry: Expiry, kept_of: KeptOf) -> int:
    """Count the ranges that a sweep would remove, from one view.

    Args:
        kept_of: the messages that topics will have at the time of the sweep.
    """
    return sum(
        is_due and UsedRange.decode(view.get(SEQUENCES, key) or b"").used is not None
        for key, is_due in _every(view, b"", expiry, kept_of)
    )


def expire(batch: WriteBatch, keys: list[bytes], expiry: Expiry) -> int:
    """Remove the ranges found that may still go, and note a use where none is noted; return the number removed."""
    removed = 0
    for key in keys:
        payload = batch.get(SEQUENCES, key)
        topic_id = U64.unpack(key[:8])[0]
        if payload is None or not batch.has(HEADS, key[:8]):
            continue
        used, topic = UsedRange.decode(payload), OpenTopic.load(batch, topic_id)
        if used.used is None:
            batch.put(SEQUENCES, key, used._replace(used=LastUse.now(topic)).encode())
        elif expiry.lets_go(KeptMessages.load(batch, topic_id), used) and not _must_stay(batch, key):
            batch.delete(SEQUENCES, key)
            removed += 1
    return removed


def _every(
    view: ReadView, after: bytes, expiry: Expiry, kept_of: KeptOf = KeptMessages.load
) -> Iterator[tuple[bytes, bool]]:
    """Yield ranges from a key on, and whether each is due; of a topic that was never trimmed only the first."""
    at: bytes | None = after or b"\0"
    while at is not None:
        record = view.first(SEQUENCES, b"", at)
        if record is None:
            return
        topic_id = U64.unpack(record[0][:8])[0]
        at = key1(topic_id + 1)
        kept = kept_of(view, topic_id) if view.has(HEADS, key1(topic_id)) else None
        if kept is not None and kept.is_trimmed:
            yield from _of_topic(view, record[0], kept, expiry)
        else:
            yield record[0], False


def _of_topic(
    view: ReadView, start: bytes, kept: KeptMessages, expiry: Expiry
) -> Iterator[tuple[bytes, bool]]:
    name, keeps = start[:-8], not _is_lowest(view, start)
    for key, payload in view.scan(SEQUENCES, start[:8], start):
        if key[:-8] != name:
            name, keeps = key[:-8], False
        used = UsedRange.decode(payload)
        goes = expiry.lets_go(kept, used) and not (keeps and _is_highest(view, key))
        keeps = keeps or not goes
        yield key, goes or used.used is None


def _must_stay(view: ReadView, key: bytes) -> bool:
    """Whether a range is the highest one of its name, and not the last one that is kept."""
    return not _is_lowest(view, key) and _is_highest(view, key)


def _is_lowest(view: ReadView, key: bytes) -> bool:
    first = view.first(SEQUENCES, key[:-8])
    return first is not None and first[0] == key


def _is_highest(view: ReadView, key: bytes) -> bool:
    return view.first(SEQUENCES, key[:-8], key + b"\0") is None
