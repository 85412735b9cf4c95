"""Limits of what a topic keeps, for the store and for a topic: retention, time to live, expiry of subscriptions.

A limit that is not set keeps everything, which is the default. The limits stand in records of their own beside the
format number, so that a store without any limit is told by one look-up. Which ledgers the limits let
go is decided in `storage/subscription/trimming.py`, as subscriptions hold messages back.

A dead-letter topic usually has no subscription, so the limits of the store would empty it unread. It has limits of its
own in the store instead, of age and size alone. See docs/decisions/0049-bounded-records.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from storage.disk.codec import key1, pack, unpack
from storage.disk.schema import SEQUENCES, STORE
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue
from storage.limits import LIFETIME_MS_MIN, RETENTION_BYTES_MAX, RETENTION_MS_MAX
from storage.values.durations import duration_text, given_duration
from storage.values.named_tuple import NamedTuple
from storage.values.names import LETTERS_PREFIX

_KEY: Final = b"retention"
_OF_LETTERS: Final = b"retention-letters"
_OF_TOPIC: Final = b"retention\0"
EVERYTHING: Final = -1
"""In the record of a topic: no limit, whatever the limit of the store is."""

OFF: Final = "off"
TRIM: Final = "trim"
REFUSE: Final = "refuse"
HARD: Final = (OFF, TRIM, REFUSE)
"""The effects of the limits on messages that a subscription has not acknowledged: none, loss, or no new messages."""


class RetentionLimits(NamedTuple):
    """The limits of a topic; None for no limit.

    Attributes:
        time_ms, bytes: age and size down to which acknowledged messages are kept; 0 keeps nothing once every
            subscription acknowledged it.
        hard: `off`, `trim` or `refuse`: the effect of both on messages that are not acknowledged; None is off.
        ttl_ms: the age at which a message is acknowledged for every subscription that has not.
        expire_after_ms: the time without a consumer after which a subscription is deleted.
    """

    time_ms: int | None
    bytes: int | None
    hard: str | None = None
    ttl_ms: int | None = None
    expire_after_ms: int | None = None

    @property
    def keeps_everything(self) -> bool:
        return self.time_ms is None and self.bytes is None

    def as_hard(self, kind: str) -> RetentionLimits:
        """The limits of age and size that hold for what is not acknowledged too, if they are hard of this kind.

        A limit of 0 is never hard: every message would be lost before a consumer came by.
        """
        if self.hard != kind:
            return NO_LIMITS
        return RetentionLimits(self.time_ms or None, self.bytes or None)


NO_LIMITS: Final = RetentionLimits(None, None)


class LimitChange(NamedTuple):
    """A change of some limits, each a number or a word; None leaves a limit as it is."""

    time_ms: int | str | None = None
    bytes: int | str | None = None
    hard: str | None = None
    ttl_ms: int | str | None = None
    expire_after_ms: int | str | None = None


def are_set(view: ReadView) -> bool:
    """Whether the store or a topic has a limit: a look-up of the first such record."""
    return view.count(STORE) > 1 and next(view.keys(STORE, _KEY), None) is not None


def of_store(view: ReadView) -> RetentionLimits:
    """The limits of topics without limits of their own."""
    return _read(view, _KEY)


def of_dead_letters(view: ReadView) -> RetentionLimits:
    """The limits of dead-letter topics without limits of their own."""
    return _read(view, _OF_LETTERS)


def has_letters(view: ReadView, topic_id: int) -> bool:
    """Whether the store has published dead letters on a topic, by the sequence ids of their producer names."""
    prefix = key1(topic_id) + LETTERS_PREFIX.encode("ascii")
    return next(view.keys(SEQUENCES, prefix), None) is not None


def own(view: ReadView, topic_id: int) -> RetentionLimits:
    """The limits of a topic's own record: None where the store's limit holds, EVERYTHING for no limit."""
    return _read(view, _OF_TOPIC + key1(topic_id))


def topics_with_own(view: ReadView) -> list[int]:
    """The ids of topics with a record of their own."""
    return [int.from_bytes(key[len(_OF_TOPIC) :], "big") for key in view.keys(STORE, _OF_TOPIC)]


def of_topic(view: ReadView, topic_id: int) -> RetentionLimits:
    """The limits that hold for a topic: its own, or else the store's, for dead letters or for the rest."""
    if not are_set(view):
        return NO_LIMITS
    return in_force(own(view, topic_id), of_others(view, topic_id))


def of_others(view: ReadView, topic_id: int) -> RetentionLimits:
    """The limits of the store for a topic without limits of its own: those of dead letters, or of the rest."""
    return of_dead_letters(view) if has_letters(view, topic_id) else of_store(view)


def in_force(own_limits: RetentionLimits, of_all: RetentionLimits) -> RetentionLimits:
    """The limits that hold for a topic with limits of its own in a store with limits."""
    hard = of_all.hard if own_limits.hard is None else own_limits.hard
    return RetentionLimits(
        _either(own_limits.time_ms, of_all.time_ms), _either(own_limits.bytes, of_all.bytes), hard,
        _either(own_limits.ttl_ms, of_all.ttl_ms), _either(own_limits.expire_after_ms, of_all.expire_after_ms),
    )  # fmt: skip


def _either(limit: int | None, of_all: int | None) -> int | None:
    return of_all if limit is None else None if limit == EVERYTHING else limit


def changed(before: RetentionLimits, asked: LimitChange, words: Mapping[str, int | None]) -> RetentionLimits:
    """The limits after a change.

    Args:
        words: the limit for each word that may stand in place of a number.

    Raises:
        InvalidValue: a limit is neither a word nor within its bounds.
    """
    return RetentionLimits(
        _number(_TIME, before.time_ms, asked.time_ms, words),
        _number(_SIZE, before.bytes, asked.bytes, words),
        _hard(before.hard, asked.hard, words),
        _number(_TTL, before.ttl_ms, asked.ttl_ms, words),
        _number(_EXPIRE, before.expire_after_ms, asked.expire_after_ms, words),
    )


class _Bounds(NamedTuple):
    """The name of a limit, the bounds of its numbers, the unit, and a hint."""

    name: str
    least: int
    most: int
    unit: str
    hint: str


_KEEPS: Final = "0 keeps nothing that every subscription has acknowledged; unset keeps everything."
_TIME: Final = _Bounds("retention time", 0, RETENTION_MS_MAX, "ms", _KEEPS)
_SIZE: Final = _Bounds("retention size", 0, RETENTION_BYTES_MAX, "bytes", _KEEPS)
_NEVER: Final = "unset switches it off."
_TTL: Final = _Bounds("time to live", LIFETIME_MS_MIN, RETENTION_MS_MAX, "ms", _NEVER)
_EXPIRE: Final = _Bounds(
    "time after which a subscription expires", LIFETIME_MS_MIN, RETENTION_MS_MAX, "ms", _NEVER
)


def _number(
    bounds: _Bounds, before: int | None, asked: int | str | None, words: Mapping[str, int | None]
) -> int | None:
    if asked is None:
        return before
    if isinstance(asked, str) and asked in words:
        return words[asked]
    if type(asked) is int and bounds.least <= asked <= bounds.most:
        return asked
    least, most, given = f"{bounds.least}", f"{bounds.most} {bounds.unit}", repr(asked)
    if bounds.unit == "ms":
        least, most, given = duration_text(bounds.least), duration_text(bounds.most), given_duration(asked)
    raise InvalidValue(
        f"a {bounds.name} is {least} to {most}, or {' or '.join(words)}, not {given}",
        hint=bounds.hint,
    )


def _hard(before: str | None, asked: str | None, words: Mapping[str, int | None]) -> str | None:
    """For a topic, `off` stands before the store's; `unset` is `off`, and `store` takes the store's."""
    if asked is None:
        return before
    if asked in words:
        return None if words[asked] is None else OFF
    if asked in HARD:
        return asked if asked != OFF or "store" in words else None
    raise InvalidValue(
        f"hard retention is {', '.join(HARD)} or {' or '.join(words)}, not {asked!r}",
        hint="off keeps what is not acknowledged; trim loses it; refuse takes no new messages.",
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


def _read(view: ReadView, key: bytes) -> RetentionLimits:
    payload = view.get(STORE, key)
    return NO_LIMITS if payload is None else RetentionLimits(*unpack(payload, 2)[: len(NO_LIMITS)])


def _write(batch: WriteBatch, key: bytes, limits: RetentionLimits) -> None:
    if limits == NO_LIMITS:
        if batch.has(STORE, key):
            batch.delete(STORE, key)
    else:
        fields = list(limits)
        while len(fields) > 2 and fields[-1] is None:
            fields.pop()
        batch.put(STORE, key, pack(fields))
