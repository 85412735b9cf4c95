"""Change the settings of a store."""

from __future__ import annotations

from typing import Final

from storage.admin.audited_change import Changed, ChangeRequest, run_change
from storage.admin.limit_forecast import LetGo, forecast
from storage.disk import reserve
from storage.disk.reserve import RESERVE_BYTES_MAX, RESERVE_BYTES_MIN
from storage.disk.superblock import ReapPolicy
from storage.disk.view import ReadView, WriteBatch
from storage.engine import Engine
from storage.errors import InvalidValue
from storage.limits import TABLE_RETENTION_MS_MAX, TABLE_RETENTION_MS_MIN
from storage.topic import retention, sequence_retention
from storage.topic.retention import LimitChange, RetentionLimits
from storage.txn.reaper import EVERY
from storage.values.arguments import check_flags
from storage.values.durations import duration_text, given_duration
from storage.values.named_tuple import NamedTuple
from storage.values.names import chosen


class RetentionChanged(NamedTuple):
    """The table retention before and after."""

    table_retention_ms_before: int
    table_retention_ms: int


class TopicRetentionChanged(NamedTuple):
    """The limits of topics without limits of their own, before and after, and what they let go of now."""

    before: RetentionLimits
    limits: RetentionLimits
    lets_go: LetGo


class SequenceRetentionChanged(NamedTuple):
    """The retention of sequence ids in ms before and after; None keeps them for ever."""

    sequence_retention_ms_before: int | None
    sequence_retention_ms: int | None


class ReapPolicyChanged(NamedTuple):
    """The reap policy before and after."""

    reap_policy_before: str
    reap_policy: str


class ReserveChanged(NamedTuple):
    """The size in bytes of the reserve, before and after."""

    reserve_bytes_before: int
    reserve_bytes: int


_LIMITS: Final = (
    ("retention-time", " ms"), ("retention-size", " bytes"), ("retention-hard", ""),
    ("ttl", " ms"), ("expire-after", " ms"),
)  # fmt: skip
"""The names of limits in the order of `LimitChange`, with the unit of a number."""


def _target(asked: LimitChange) -> str:
    """The limits that are changed, with their values, for the audit trail."""
    return ", ".join(
        f"{name} {value}{'' if isinstance(value, str) else unit}"
        for (name, unit), value in zip(_LIMITS, asked, strict=True)
        if value is not None
    )


class SettingsAdmin:
    """Changes of the store's settings, as `store.admin.settings`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def set_table_retention(
        self, retention_ms: int, *, dry_run: bool = False, reason: str | None = None
    ) -> Changed[RetentionChanged]:
        """Set the age up to which versions of table rows are kept, for reads in the past and long transactions.

        Raises:
            InvalidValue
        """
        check_flags(dry_run=dry_run)
        if (
            type(retention_ms) is not int
            or not TABLE_RETENTION_MS_MIN <= retention_ms <= TABLE_RETENTION_MS_MAX
        ):
            raise InvalidValue(
                f"table versions are kept for {duration_text(TABLE_RETENTION_MS_MIN)} to "
                f"{duration_text(TABLE_RETENTION_MS_MAX)}, not {given_duration(retention_ms)}",
                hint="Transactions older than that can no longer use tables.",
            )

        def change(batch: WriteBatch) -> RetentionChanged:
            before, batch.superblock.table_retention_ms = batch.superblock.table_retention_ms, retention_ms
            return RetentionChanged(before, retention_ms)

        return run_change(
            self._engine,
            ChangeRequest("store config", f"table-retention {retention_ms} ms", dry_run, reason),
            change,
        )

    def set_retention(
        self,
        *,
        time_ms: int | str | None = None,
        size: int | str | None = None,
        hard: str | None = None,
        ttl_ms: int | str | None = None,
        expire_after_ms: int | str | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Changed[TopicRetentionChanged]:
        """Set the limits of topics without limits of their own, as `store.admin.topics.set_retention` does for one.

        In place of each, `unset` sets no limit, and None leaves the limit as it is.

        Raises:
            InvalidValue
        """
        check_flags(dry_run=dry_run)

        asked, words = LimitChange(time_ms, size, hard, ttl_ms, expire_after_ms), {"unset": None}

        def change(batch: WriteBatch) -> TopicRetentionChanged:
            before = retention.of_store(batch)
            limits = retention.changed(before, asked, words)
            retention.set_for_store(batch, limits)
            return TopicRetentionChanged(before, limits, lets_go)

        def limits_of(view: ReadView, topic_id: int) -> RetentionLimits:
            if retention.has_letters(view, topic_id):
                return retention.of_topic(view, topic_id)
            of_all = retention.changed(retention.of_store(view), asked, words)
            return retention.in_force(retention.own(view, topic_id), of_all)

        lets_go = LetGo.counted(forecast(self._engine, limits_of=limits_of).step)
        return run_change(
            self._engine, ChangeRequest("store config", _target(asked), dry_run, reason), change, naming=EVERY
        )

    def set_dead_letter_retention(
        self,
        *,
        time_ms: int | str | None = None,
        size: int | str | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Changed[TopicRetentionChanged]:
        """Set the age and size down to which dead letters are kept, on topics without limits of their own.

        Args:
            time_ms, size: as for `set_retention`, whose limits do not hold for dead-letter topics.

        Raises:
            InvalidValue
        """
        check_flags(dry_run=dry_run)

        asked, words = LimitChange(time_ms, size), {"unset": None}

        def change(batch: WriteBatch) -> TopicRetentionChanged:
            before = retention.of_dead_letters(batch)
            limits = retention.changed(before, asked, words)
            retention.set_for_dead_letters(batch, limits)
            return TopicRetentionChanged(before, limits, lets_go)

        def limits_of(view: ReadView, topic_id: int) -> RetentionLimits:
            if not retention.has_letters(view, topic_id):
                return retention.of_topic(view, topic_id)
            of_all = retention.changed(retention.of_dead_letters(view), asked, words)
            return retention.in_force(retention.own(view, topic_id), of_all)

        lets_go = LetGo.counted(forecast(self._engine, limits_of=limits_of).step)
        request = ChangeRequest("store config", "dead-letter-retention", dry_run, reason)
        return run_change(self._engine, request, change, naming=EVERY)

    def set_sequence_retention(
        self, kept: int | str, *, dry_run: bool = False, reason: str | None = None
    ) -> Changed[SequenceRetentionChanged]:
        """Set the ms for which the sequence ids of trimmed messages are kept after their last use; `unset` for ever.

        Raises:
            InvalidValue
        """
        check_flags(dry_run=dry_run)

        def change(batch: WriteBatch) -> SequenceRetentionChanged:
            before = sequence_retention.retention_ms(batch)
            return SequenceRetentionChanged(before, sequence_retention.set_retention(batch, kept))

        return run_change(
            self._engine, ChangeRequest("store config", "sequence-retention", dry_run, reason), change
        )

    def set_reserve(
        self, size: int, *, dry_run: bool = False, reason: str | None = None
    ) -> Changed[ReserveChanged]:
        """Set the bytes of disk that are kept for changes that free space; 0 keeps none.

        Raises:
            InvalidValue
        """
        check_flags(dry_run=dry_run)
        if not self._engine.connection.environment.has_directory:
            raise InvalidValue(
                f"{self._engine.connection.path} has no reserve: its disk is the server's",
                hint="Watch the disk of the server; a full one refuses changes, and loses nothing.",
            )
        if type(size) is not int or not (size == 0 or RESERVE_BYTES_MIN <= size <= RESERVE_BYTES_MAX):
            raise InvalidValue(
                f"a reserve has {RESERVE_BYTES_MIN} to {RESERVE_BYTES_MAX} bytes, not {size!r}",
                hint="0 keeps none: then nothing can be deleted on a full disk.",
            )

        def change(batch: WriteBatch) -> ReserveChanged:
            before = reserve.setting(batch)
            reserve.set_size(batch, size)
            return ReserveChanged(before, size)

        changed = run_change(
            self._engine, ChangeRequest("store config", f"reserve {size} bytes", dry_run, reason), change
        )
        if not dry_run:
            self._engine.connection.environment.writer.keep_reserve(self._engine.connection.lock_timeout_s)
        return changed

    def set_reap_policy(
        self, policy: ReapPolicy | str, *, dry_run: bool = False, reason: str | None = None
    ) -> Changed[ReapPolicyChanged]:
        """Set the transactions that the next writer reaps.

        Args:
            policy: `all` (overdue and orphaned transactions), `overdue`, or `manual`.

        Raises:
            InvalidValue
        """
        check_flags(dry_run=dry_run)
        asked = chosen(ReapPolicy, policy, "reap policy")

        def change(batch: WriteBatch) -> ReapPolicyChanged:
            before, batch.superblock.reap_policy = ReapPolicy(batch.superblock.reap_policy), asked
            return ReapPolicyChanged(before.name.lower(), asked.name.lower())

        return run_change(
            self._engine,
            ChangeRequest("store config", f"reap-policy {asked.name.lower()}", dry_run, reason),
            change,
        )
