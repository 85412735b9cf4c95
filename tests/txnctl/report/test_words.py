"""A topic in words: the line with its counts, and the description for those who cannot see the picture."""

from __future__ import annotations

from storage.reports.stats import Readable
from storage.values.position import Position
from tests.txnctl.typed_rows import QUIET, STATS, blocking, ledgers_of
from txnctl.report.words import description, facts

BILLING = STATS._replace(mark_delete_position=Position(1, 50), verdict="blocked")
STUCK = QUIET._replace(
    msg_count=1300, ledgers=ledgers_of([1, 1]), readable=Readable(100, 0, 1188, 1000), as_of_at_ms=61_000,
    uncommitted_messages=12, ongoing_txn_count=2, aborted_messages=3,
    open_transactions=[blocking("0:7", "1:100", "1:100", "1:499"), blocking("0:9", "1:500", "1:500", "2:5")],
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
    assert description(STUCK) == (
        "1,300 messages in 2 ledgers. READ_COMMITTED reads up to 1:99 of 2:5. "
        "2 open transactions, the first of them 0:7 from 1:100 on; 1,188 committed messages blocked. "
        "subscription billing: READ_COMMITTED, acknowledged through 1:50, blocked."
    )


def test_many_subscriptions_are_counted() -> None:
    """After the first twenty."""
    many = {f"s{number}": BILLING for number in range(23)}
    text = description(QUIET._replace(subscriptions=many))
    assert "subscription s19:" in text
    assert "s20" not in text
    assert text.endswith("3 more subscriptions.")
