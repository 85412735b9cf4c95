"""Beginning a transaction: check the options, and make the first record."""

from __future__ import annotations

from typing import Any

from storage.disk.view import WriteBatch
from storage.errors import InvalidValue
from storage.limits import (
    LABEL_VALUE_BYTES_MAX,
    LABELS_MAX,
    TRANSACTION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS_MAX,
)
from storage.process.clock import nanoseconds
from storage.process.identity import ProcessIdentity
from storage.txn.options import SERIALIZABLE, TransactionOptions
from storage.txn.record import TransactionRecord
from storage.values.names import check_name
from storage.values.txn_state import STATE_CODES, TransactionState

_OPEN = STATE_CODES.index(TransactionState.OPEN)


class Started:
    """The begin of a transaction: timestamp (0: not issued yet), wall time in ms, store clock in ns."""

    __slots__ = ("now_ns", "timestamp", "wall_ms")

    def __init__(self, timestamp: int, wall_ms: int, now_ns: int) -> None:
        self.timestamp = timestamp
        self.wall_ms = wall_ms
        self.now_ns = now_ns


class NewTransaction:
    """The options of a new transaction.

    Attributes:
        timeout_ms: until the deadline, 24 hours at most.
    """

    __slots__ = ("labels", "options", "timeout_ms")

    def __init__(
        self,
        timeout_ms: int,
        labels: dict[str, str] | None = None,
        options: TransactionOptions = SERIALIZABLE,
    ) -> None:
        """Raises:
        InvalidValue, InvalidName: a timeout or label out of bounds.
        """
        _check(timeout_ms, labels)
        self.timeout_ms = timeout_ms
        self.labels = labels
        self.options = options


def timeout_ms_of(seconds: float | None) -> int:
    """The timeout of a new transaction in milliseconds; the default if None.

    Raises:
        InvalidValue: no number, or negative.
    """
    if seconds is None:
        return TRANSACTION_TIMEOUT_MS
    return nanoseconds(seconds, "a transaction's timeout") // 1_000_000


def _check(timeout_ms: int, labels: dict[str, str] | None) -> None:
    if not 0 < timeout_ms <= TRANSACTION_TIMEOUT_MS_MAX:
        raise InvalidValue(
            f"a transaction's timeout of {timeout_ms / 1000:,.10g} s is not between 1 ms and 24 h",
            timeoutMs=timeout_ms,
        )
    if labels is not None:
        _check_labels(labels)


def _check_labels(labels: Any) -> None:
    if not isinstance(labels, dict):
        raise InvalidValue(
            f"labels are names with their values, not {labels!r}", hint='Give a dict: {"job": "nightly"}.'
        )
    if len(labels) > LABELS_MAX:
        raise InvalidValue(f"a transaction has at most {LABELS_MAX} labels, not {len(labels)}")
    for name, value in labels.items():
        if (
            not isinstance(name, str)
            or not isinstance(value, str)
            or (not value.isascii() and not _is_unicode(value))
        ):
            raise InvalidValue("the names and values of labels are text")
        check_name("label name", name)
        if len(value.encode()) > LABEL_VALUE_BYTES_MAX:
            raise InvalidValue(f"the value of label {name} is longer than {LABEL_VALUE_BYTES_MAX} bytes")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def new_record(
    batch: WriteBatch, owner: ProcessIdentity, lease: int, begin: NewTransaction, started: Started | None
) -> TransactionRecord:
    """Make the record of the next transaction, open and not in the store yet.

    Args:
        started: the begin, if earlier than the batch that writes the record; None for now.
    """
    started = started or Started(batch.timestamp(), batch.now_ms, batch.now_ns)
    timeout_ms, options = begin.timeout_ms, begin.options
    batch.superblock.last_txn += 1
    record = TransactionRecord()
    record.txn_id, record.version = batch.superblock.last_txn, 1
    record.state_code = _OPEN
    record.timestamp, record.begun_ms = started.timestamp or batch.timestamp(), started.wall_ms
    record.deadline_ns, record.timeout_ms = started.now_ns + timeout_ms * 1_000_000, timeout_ms
    record.lease, record.owner_fields, record.labels = lease, [*owner], begin.labels or {}
    record.isolation, record.check, record.priority = options.stored
    record.used_ns, record.used_ms = batch.now_ns, batch.now_ms
    record.ended_ms = record.ended_timestamp = record.reason_code = record.reason_text = None
    record.ended_by_fields = None
    record.messages = record.acknowledgements = 0
    record.incarnation = batch.superblock.incarnation
    record.uses_tables, record.consumed, record.written, record.conflict = False, 0, [], None
    record.producers_fenced, record.user_fields = False, None
    return record
