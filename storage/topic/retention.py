"""Retention limits: the age and the size down to which acknowledged messages are kept, for the store and for a topic.

A limit that is not set keeps everything, which is the default. The limits stand in records of their own beside the
format number, so that a store without any limit is told by one look-up. Which ledgers the limits let
go is decided in `storage/subscription/trimming.py`, as subscriptions hold messages back.

A dead-letter topic usually has no subscription, so the limits of the store would empty it unread. It has limits of its
own in the store instead. See docs/decisions/0049-bounded-records.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from storage.disk.codec import key1, pack, unpack_first
from storage.disk.schema import SEQUENCES, STORE
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue
from storage.limits import RETENTION_BYTES_MAX, RETENTION_MS_MAX
from storage.values.named_tuple import NamedTuple
from storage.values.names import LETTERS_PREFIX

_KEY: Final = b"retention"
_OF_LETTERS: Final = b"retention-letters"
_OF_TOPIC: Final = b"retention\0"
EVERYTHING: Final = -1
"""In the record of a topic: no limit, whatever the limit of the store is."""


class RetentionLimits(NamedTuple):
    """Age in ms and size in bytes; None keeps everything, 0 keeps nothing once every subscription acknowledged it."""

    time_ms: int | None
    bytes: int | None

    @property
    def keeps_everything(self) -> bool:
        return self.time_ms is None and self.bytes is None


NO_LIMITS: Final = RetentionLimits(None, None)


def are_set(view: ReadView) -> bool:
    """Whether the store or a topic has a limit: a look-up of the first such record."""
    return view.count(STORE) > 1 and next(view.keys(STORE, _KEY), None) is not None


def of_store(view: ReadView) -> RetentionLimits:
    """The limits of topics without limits of their own."""
    payload = view.get(STORE, _KEY)
    return NO_LIMITS if payload is None else RetentionLimits(*unpack_first(payload, 2))


def of_dead_letters(view: ReadView) -> RetentionLimits:
    """The limits of dead-letter topics without limits of their own."""
    payload = view.get(STORE, _OF_LETTERS)
    return NO_LIMITS if payload is None else RetentionLimits(*unpack_first(payload, 2))


def has_letters(view: ReadView, topic_id: int) -> bool:
    """Whether the store has published dead letters on a topic, by the sequence ids of their producer names."""
    prefix = key1(topic_id) + LETTERS_PREFIX.encode("ascii")
    return next(view.keys(SEQUENCES, prefix), None) is not None


def own(view: ReadView, topic_id: int) -> RetentionLimits:
    """The limits of a topic's own record: None where the store's limit holds, EVERYTHING for no limit."""
    payload = view.get(STORE, _OF_TOPIC + key1(topic_id))
    return NO_LIMITS if payload is None else RetentionLimits(*unpack_first(payload, 2))


def of_topic(view: ReadView, topic_id: int) -> RetentionLimits:
    """The limits that hold for a topic: its own, or else the store's, for dead letters or for the rest."""
    if not are_set(view):
        return NO_LIMITS
    general = of_dead_letters(view) if has_letters(view, topic_id) else of_store(view)
    time_ms, size = (
        of_all if limit is None else None if limit == EVERYTHING else limit
        for limit, of_all in zip(own(view, topic_id), general, strict=True)
    )
    return RetentionLimits(time_ms, size)


def changed(
    before: RetentionLimits,
    time_ms: int | str | None,
    size: int | str | None,
    words: Mapping[str, int | None],
) -> RetentionLimits:
    """The limits after a change; None leaves a limit as it is.

    Args:
        words: the limit for each word that may stand in place of a number.

    Raises:
        InvalidValue: a limit is neither a word nor a number of ms or bytes within the bounds.
    """
    return RetentionLimits(
        _limit("time", before.time_ms, time_ms, words, f"0 to {RETENTION_MS_MAX} ms"),
        _limit("size", before.bytes, size, words, f"0 to {RETENTION_BYTES_MAX} bytes"),
    )


def _limit(
    name: str, before: int | None, asked: int | str | None, words: Mapping[str, int | None], bounds: str
) -> int | None:
    if asked is None:
        return before
    if isinstance(asked, str) and asked in words:
        return words[asked]
    most = RETENTION_MS_MAX if name == "time" else RETENTION_BYTES_MAX
    if type(asked) is int and 0 <= asked <= most:
        return asked
    raise InvalidValue(
        f"a retention {name} is {bounds}, or {' or '.join(words)}, not {asked!r}",
        hint="0 keeps nothing that every subscription has acknowledged; unset keeps everything.",
    )


def set_for_store(batch: WriteBatch, limits: RetentionLimits) -> None:
    """Write the limits of topics without limits of their own."""
    _write(batch, _KEY, limits)


def set_for_dead_letters(batch: WriteBatch, limits: RetentionLimits) -> None:
    """Write the limits of dead-letter topics without limits of their own."""
    _write(batch, _OF_LETTERS, limits)


def set_for_topic(batch: WriteBatch, topic_id: int, limits: RetentionLimits) -> None:
    """Write a topic's own limits; see `own`."""
    _write(batch, _OF_TOPIC + key1(topic_id), limits)


def forget(batch: WriteBatch, topic_id: int) -> None:
    """Remove the limits of a topic that is deleted."""
    key = _OF_TOPIC + key1(topic_id)
    if batch.has(STORE, key):
        batch.delete(STORE, key)


def _write(batch: WriteBatch, key: bytes, limits: RetentionLimits) -> None:
    if limits.keeps_everything:
        if batch.has(STORE, key):
            batch.delete(STORE, key)
    else:
        batch.put(STORE, key, pack(list(limits)))
