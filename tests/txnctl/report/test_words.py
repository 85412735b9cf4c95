"""A topic in words: the line with its counts, and the description for those who cannot see the picture."""

from __future__ import annotations

from storage.json_form import to_json
from storage.process.identity import ProcessIdentity
from storage.reports.stats import Readable, SubscriptionStats
from storage.reports.stats_internal import LedgerRow
from storage.reports.timeline import Blocking, Holder, IfEnded, LedgerOnAxis, Timeline, Written
from storage.values.position import Position
from storage.values.txn_id import TxnID
from txnctl.report.words import description, facts

LEDGER = LedgerOnAxis(LedgerRow(1, 1, 1, 1, 0, None), 0)
OWNER = ProcessIdentity("db-2", b"", 48211, 0, "anna", "loader")
BILLING = SubscriptionStats(
    type="Exclusive", subscription_isolation_level="READ_COMMITTED", on_open="block",
    mark_delete_position=Position(1, 50), read_position=Position(1, 50), msg_backlog=0, visible=0, blocked=0,
    uncommitted=0, pending=0, pending_in=[], unacked_messages=0, acknowledged_ahead=0, aborted_ahead=0,
    backlog_size=0, msg_out_counter=0, msg_redeliver_counter=0, dead_letter_topic=None, max_redeliver_count=None,
    held_by=[], verdict="blocked", created_at_ms=0, consumers=[],
)  # fmt: skip


def blocking(txn: str, first: Position) -> Blocking:
    """An open transaction with messages from there on."""
    return Blocking(
        holder=Holder(TxnID.parse(txn), 0, {}, OWNER, "alive", False, 0, 0, 0, 0, False),
        topic="orders", name="orders", place=1, written=Written(1, 1, first, first, [], []),
        holds_from=first, holds_through=first, frees=0, unblocks={}, frees_where_skipped=0,
        if_ended=IfEnded(first, first, 0, 0), blocked_next=None,
    )  # fmt: skip


QUIET = Timeline(
    topic="orders", name="orders", as_of_at_ms=0, first_position=Position(1, 0),
    max_read_position=Position(1, 0), last_confirmed_entry=Position(1, 0), topic_epoch=None, msg_count=1,
    marker_count=0, ongoing_txn_count=0, aborted_txn_count=0, uncommitted_messages=0, aborted_messages=0,
    readable=Readable(1, 0, 0, None), ledgers=[LEDGER], open_transactions=[], subscriptions={},
)  # fmt: skip
STUCK = QUIET._replace(
    msg_count=1300, ledgers=[LEDGER, LEDGER], readable=Readable(100, 0, 1188, 1000), as_of_at_ms=61_000,
    uncommitted_messages=12, ongoing_txn_count=2, aborted_messages=3,
    open_transactions=[blocking("0:7", Position(1, 100)), blocking("0:9", Position(1, 500))],
    max_read_position=Position(1, 99), last_confirmed_entry=Position(2, 5), subscriptions={"billing": BILLING},
)  # fmt: skip


def test_a_quiet_topic_has_few_words() -> None:
    """Nothing is said of what there is not."""
    assert facts(QUIET) == "1 message in 1 ledger; 1 readable; no subscriptions"


def test_what_is_blocked_is_said_with_its_cause() -> None:
    """And for how long."""
    assert facts(STUCK) == (
        "1,300 messages in 2 ledgers; 100 readable; 1,188 messages blocked, the oldest for 1m00s; "
        "12 uncommitted in 2 open transactions; 3 aborted"
    )


def test_the_description_names_ends_holders_and_subscriptions() -> None:
    """In sentences."""
    assert description(to_json(STUCK)) == (
        "1,300 messages in 2 ledgers. READ_COMMITTED reads up to 1:99 of 2:5. "
        "2 open transactions, the first of them 0:7 from 1:100 on; 1,188 committed messages blocked. "
        "subscription billing: READ_COMMITTED, acknowledged through 1:50, blocked."
    )


def test_many_subscriptions_are_counted() -> None:
    """After the first twenty."""
    many = {f"s{number}": BILLING for number in range(23)}
    text = description(to_json(QUIET._replace(subscriptions=many)))
    assert "subscription s19:" in text
    assert "s20" not in text
    assert text.endswith("3 more subscriptions.")
