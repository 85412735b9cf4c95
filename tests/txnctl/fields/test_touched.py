"""What a transaction touched, in words."""

from __future__ import annotations

from storage.reports.transactions import SubscriptionPartRow, TablePartRow, TopicPartRow
from storage.values.position import Position
from storage.values.txn_state import TransactionState
from tests.txnctl.typed_rows import DETAILS, START, TRANSACTION
from txnctl.fields.touched import Touched, short_names, touched, touched_parts

TOPIC = TopicPartRow("topic", 3, 3, START, START, [f"1:{number}" for number in range(9)], "orders", "orders")
ACKS = SubscriptionPartRow("subscription", "billing", 1, None, [], "orders", "orders")
TABLE = TablePartRow("table", 4, [b"B1", b"B2"], False, "accounts")
ROW = TRANSACTION._replace(topics=["persistent://public/default/orders"], messages=3, acknowledgements=1)
WORKED = DETAILS._replace(row=ROW, parts=[TOPIC, ACKS, TABLE])


def test_a_sentence_has_all_kinds() -> None:
    """And says so where there is nothing."""
    assert touched(WORKED) == "3 messages on orders; 1 acknowledgement; 4 keys of accounts"
    assert touched(DETAILS) == "it had touched nothing"
    assert short_names(ROW) == ["orders"]


def test_a_line_each_with_the_first_places() -> None:
    """Eight stretches; dots for more."""
    produced, acknowledged, _ = touched_parts(WORKED)
    assert produced == Touched(
        what="produced to orders", amount="3 messages",
        where="1:0, 1:1, 1:2, 1:3, 1:4, 1:5, 1:6, 1:7, ...",
    )  # fmt: skip
    assert acknowledged == Touched(
        what="acknowledgements pending on orders, billing",
        amount="1 message",
        where="-",
    )


def test_acknowledgements_are_pending_as_long_as_it_is_open() -> None:
    """A cumulative one says up to where."""
    row = ROW._replace(state=TransactionState.COMMITTED)
    part = ACKS._replace(cumulative=Position(1, 7), positions=[Position(1, 9)])
    (line,) = touched_parts(WORKED._replace(row=row, parts=[part]))
    assert line.what == "acknowledged on orders, billing"
    assert line.where == "through 1:7, 1:9"


def test_keys_are_held_written_or_were_held() -> None:
    """By the state; those not in the list are dots."""
    for state, verb in (("OPEN", "holds keys of"), ("COMMITTED", "wrote"), ("ABORTED", "held keys of")):
        row = ROW._replace(state=TransactionState(state))
        (line,) = touched_parts(WORKED._replace(row=row, parts=[TABLE]))
        assert line == Touched(what=f"{verb} table accounts", amount="4 keys", where="B1, B2, ...")
