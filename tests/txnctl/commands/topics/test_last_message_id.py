"""`txnctl topics last-message-id`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.topics import (
    last_message_id,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestLastMessageId:
    """`topics last-message-id`."""

    @pytest.mark.usefixtures("stuck")
    def test_each_level_has_its_own(self, run: Any) -> None:
        """Neither a marker nor an aborted message at READ_COMMITTED."""
        assert run("topics", "last-message-id", "orders").out == "1:3\n"
        outcome = run(
            "topics", "last-message-id", "orders", "--isolation-level", "read_uncommitted", "-o", "json"
        )
        assert outcome.json == {
            "topic": "persistent://public/default/orders",
            "name": "orders",
            "isolationLevel": "READ_UNCOMMITTED",
            "subscription": None,
            "messageId": "1:8",
        }
        assert not undeclared(outcome.json, last_message_id.LAST_MESSAGE_ID)

    def test_of_an_empty_topic_there_is_none(self, run: Any) -> None:
        """Null for programs, nothing on standard output for shells."""
        run("topics", "create", "orders")
        outcome = run("topics", "last-message-id", "orders")
        assert (outcome.status, outcome.out.strip()) == (0, "")
        assert "no message" in outcome.err
        assert run("topics", "last-message-id", "orders", "-o", "json").json["messageId"] is None

    def test_the_known_answer(self, run: Any, path: Path) -> None:
        """Section 4 of the semantics: n n n t1 n t2; commit t1; abort t2."""
        run("topics", "create", "t")

        def look() -> tuple[str, str]:
            last = run("topics", "last-message-id", "t").out.strip()
            return last, run("topics", "stats", "t", "-o", "json").json["maxReadPosition"]

        with Store.open(path) as store:
            producer = store.create_producer("t")
            for _ in range(3):
                producer.send(b"n")
            first = store.begin_transaction()
            producer.send(b"1", txn=first)
            producer.send(b"n")
            second = store.begin_transaction()
            producer.send(b"2", txn=second)
        assert look() == ("1:2", "1:2")
        with Store.open(path) as store:
            store.commit_transaction(first)
        assert look() == ("1:4", "1:4")
        with Store.open(path) as store:
            store.admin.transactions.abort_transaction(second)
        assert look() == ("1:4", "1:7")
