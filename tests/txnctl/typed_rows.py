"""Rows of the engine for tests of words and drawings: each with usual values, for `_replace`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from storage.process.identity import ProcessIdentity
from storage.reports.stats import Readable, SubscriptionStats
from storage.reports.stats_internal import LedgerRow
from storage.reports.timeline import Blocking, Holder, IfEnded, LedgerOnAxis, Timeline, Written
from storage.reports.transactions import ProcessDetails, TransactionDetails, TransactionRow
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

OWNER = ProcessIdentity("db-2", b"", 48211, 0, "anna", "loader")
START = Position(1, 0)

TRANSACTION = TransactionRow(
    as_of_at_ms=0, txn_id=TxnID(7), state=TransactionState.OPEN, version=1, labels={}, owner=OWNER,
    owner_state="alive", last_user=OWNER, last_user_state="dead", orphaned=False, attached=True, begin_at_ms=0, age_ms=0, idle_ms=0, timeout_ms=600_000,
    deadline_in_ms=600_000, overdue=False, topics=[], tables=[], isolation="SERIALIZABLE", priority="medium",
    messages=0, acknowledgements=0, ended_at_ms=None, reason=None, reason_text=None, ended_by=None,
)  # fmt: skip
DETAILS = TransactionDetails(
    row=TRANSACTION, check=None, timestamp_ns=0, conflict=None,
    owner_details=ProcessDetails(OWNER.host, "", OWNER.pid, OWNER.user, OWNER.program),
    last_used_at_ms=0, parts=[],
)  # fmt: skip
HOLDER = Holder(
    txn_id=TxnID(7), version=1, labels={}, owner=OWNER, owner_state="alive", last_user=OWNER,
    last_user_state="dead", orphaned=False, begin_at_ms=0,
    age_ms=90_000, idle_ms=90_000, deadline_in_ms=600_000, overdue=False,
)  # fmt: skip
STATS = SubscriptionStats(
    type="Exclusive", subscription_isolation_level="READ_COMMITTED", on_open="block", mark_delete_position=START,
    read_position=START, msg_backlog=0, visible=0, blocked=0, delayed=0, uncommitted=0, pending=0, pending_in=[],
    unacked_messages=0, acknowledged_ahead=0, aborted_ahead=0, backlog_size=0, msg_out_counter=0,
    msg_redeliver_counter=0, msg_aborted_drop_counter=0, msg_lost_counter=0, msg_expired_counter=0,
    dead_letter_topic=None, max_redeliver_count=None, held_by=[], verdict="ok",
    created_at_ms=0, without_consumer_since_at_ms=None, consumers=[],
)  # fmt: skip


def ledgers_of(sizes: Sequence[int], first: int = 1) -> list[LedgerOnAxis]:
    """Ledgers of so many entries each, numbered from `first` on."""
    before = [0, *accumulate(sizes)]
    return [
        LedgerOnAxis(LedgerRow(number + first, size, size, size, 0, None), before[number], before[number])
        for number, size in enumerate(sizes)
    ]


QUIET = Timeline(
    topic="persistent://public/default/orders", name="orders", as_of_at_ms=0, first_position=START,
    max_read_position=START, last_confirmed_entry=START, topic_epoch=None, msg_count=1, marker_count=0,
    ongoing_txn_count=0, aborted_txn_count=0, uncommitted_messages=0, aborted_messages=0,
    readable=Readable(1, 0, 0, None), ledgers=ledgers_of([1]), open_transactions=[], subscriptions={},
    places=[], stretches={},
)  # fmt: skip
"""A topic with one message."""


def blocking(txn: str, first: str, last: str, through: str, runs: Sequence[str] = ()) -> Blocking:
    """A link of the chain: an open transaction with messages from `first` to `last`, which holds up to `through`."""
    begin = Position.parse(first)
    return Blocking(
        holder=HOLDER._replace(txn_id=TxnID.parse(txn)), topic=QUIET.topic, name=QUIET.name, place=1,
        written=Written(2, 2, begin, Position.parse(last), list(runs) or [first, last], []),
        holds_from=begin, holds_through=Position.parse(through), frees=5, unblocks={}, frees_where_skipped=0,
        if_ended=IfEnded(begin, begin, 0, 0), blocked_next=None,
    )  # fmt: skip
