"""Check transactions, their indexes and pending acknowledgements: invariants 6, 7 and 16."""

from __future__ import annotations

from storage.disk.codec import U64X2, key1
from storage.disk.schema import LEASE_TXNS, LEASES, OPEN_FIRST, PENDING, TXN_DEADLINES, TXN_PENDING, TXNS
from storage.disk.superblock import UNCOUNTED
from storage.disk.view import ReadView
from storage.subscription import span
from storage.txn import record as records
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from storage.verify.problem import Report


def check_transactions(view: ReadView, report: Report) -> None:
    """Records, deadlines, leases, pending acknowledgements and the count of first messages agree."""
    counted, stored = view.superblock.open_firsts, view.count(OPEN_FIRST)
    if counted not in (UNCOUNTED, stored):
        report(23, "store", f"counts {counted} records of {OPEN_FIRST.name}; there are {stored}")
    deadlines = {txn: deadline for deadline, txn in map(U64X2.unpack, view.keys(TXN_DEADLINES))}
    leases = {txn: lease for lease, txn in map(U64X2.unpack, view.keys(LEASE_TXNS))}
    for lease in set(leases.values()):
        if not view.has(LEASES, key1(lease)):
            report(6, f"lease {lease}", "has open transactions, and no process")
    timestamps: set[int] = set()
    for key in view.keys(TXNS):
        record = records.get(view, int.from_bytes(key, "big"))
        label = f"transaction {record.id}"
        is_open = record.state is TransactionState.OPEN
        if record.txn_id > view.superblock.last_txn:
            report(16, label, f"its id is above the last one issued, {view.superblock.last_txn}")
        if deadlines.pop(record.txn_id, None) != (record.deadline_ns if is_open else None):
            report(6, label, f"is {record.state.value}, but the index of deadlines says otherwise")
        if leases.pop(record.txn_id, 0) != (record.lease if is_open else 0):
            report(6, label, f"is {record.state.value}, but the index of leases says otherwise")
        for timestamp in (record.timestamp, record.ended_timestamp):
            if timestamp is not None and (
                timestamp in timestamps or timestamp > view.superblock.last_timestamp
            ):
                report(16, label, f"timestamp {timestamp} was issued twice, or never")
            timestamps.add(timestamp or 0)
        if not is_open and next(view.keys(TXN_PENDING, key), None) is not None:
            report(7, label, f"is {record.state.value}, and has acknowledgements pending")
    for txn in {*deadlines, *leases}:
        report(6, f"transaction {TxnID(txn)}", "is indexed, and has no record")
    _check_pending(view, report)


def _check_pending(view: ReadView, report: Report) -> None:
    """Pending acknowledgements are indexed both by entry and by transaction."""
    by_txn = set(view.keys(TXN_PENDING))
    by_position = {key[24:] + key[:24] for key in view.keys(PENDING)}
    for key in sorted(by_txn ^ by_position):
        at, is_span = span.unpack(key[16:])
        where = f"messages of the span at {at}" if is_span else str(at)
        txn = TxnID(int.from_bytes(key[:8], "big"))
        report(6, f"transaction {txn}", f"has {where} pending, found one way only")
