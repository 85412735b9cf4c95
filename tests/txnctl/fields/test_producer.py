"""Words and columns of tables about producers."""

from __future__ import annotations

import pytest

from storage.process.identity import ProcessIdentity
from storage.reports.producers import ProducerRow
from txnctl.fields.producer import ago, alive, columns, where

ROW = ProducerRow(
    topic="persistent://public/default/orders", name="orders", producer_name="loader", access_mode="Exclusive",
    session_id=1, epoch=7, is_owner=True, is_waiting=False, place=None,
    owner=ProcessIdentity("db-2", b"", 48211, 0, "anna", "txnctl produce"), pid=48211, host="db-2", user="anna",
    program="txnctl produce", state="alive", alive=True, connected_since_at_ms=0, last_publish_at_ms=None,
    lease_ms=None, lease_ends_in_ms=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("alive", "yes"),
        ("stopped", "stopped"),
        ("dead", "DEAD"),
        ("rebooted", "DEAD"),
        ("unknown-host", "unknown"),
        ("expired", "EXPIRED"),
    ],
)
def test_a_state_is_a_word(state: str, word: str) -> None:
    """Alarming words are in capitals."""
    assert alive(ROW._replace(state=state)) == word


def test_a_lease_is_said_with_the_time_left() -> None:
    """No process proves that the session lives."""
    assert alive(ROW._replace(state="leased", lease_ends_in_ms=30_000)) == "lease 30s"


def test_the_columns_of_topics_stats() -> None:
    """Host and pid of the owner, and the time since the last message."""
    published = ROW._replace(last_publish_at_ms=1000)
    assert where(ROW.owner) == "db-2:48211"
    assert (ago(None, 5000), ago(1000, 5000), ago(9000, 5000)) == ("-", "4s", "0ms")
    assert {column.heading: column.cell(published) for column in columns(5000)} == {
        "PRODUCER": "loader", "MODE": "Exclusive", "EPOCH": "7", "OWNER": "db-2:48211", "ALIVE": "yes",
        "LAST PUBLISH": "4s",
    }  # fmt: skip
