"""Bounds: `txnctl/commands/consume/bounds.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.waiting import let_pass

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestReading:
    """Without -s."""

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("--from", "earliest"), "0 1 2 3 4 5 6 7"),
            (("--from", "latest"), ""),
            (("--from", "1:1"), "3 4 5 6 7"),
            (("--from", "1:0:2"), "2 3 4 5 6 7"),
            (("--from", "1:9"), ""),
            (("--to", "1:1"), "0 1 2 3"),
            (("--to", "1:0:1"), "0 1"),
            (("--to", "earliest"), ""),
            (("--to", "latest"), "0 1 2 3 4 5 6 7"),
            (("--from", "1:0:1", "--to", "1:2:0"), "1 2 3 4"),
            (("--from", "1:2", "--to", "1:1"), ""),
            (("-n", "2", "--from", "1:0:1"), "1 2"),
            (("-n", "4"), "0 1 2 3"),
            (("--from", "@2020-01-01"), "0 1 2 3 4 5 6 7"),
            (("--from", "@9000000000000"), ""),
            (("--to", "@2020-01-01"), ""),
        ],
    )
    def test_begin_and_end(self, run: Any, path: Path, words: Sequence[str], expected: str) -> None:
        """A position or message id is the first, or last, one read."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            producer.send_batch([b"0", b"1", b"2"])
            producer.send(b"3")
            producer.send_batch([b"4", b"5", b"6", b"7"])
        outcome = run("consume", "orders", "-o", "value", *words)
        assert outcome.status == 0
        assert outcome.out.split() == expected.split()

    def test_a_time_is_the_first_entry_stored_then_or_later(self, run: Any, path: Path) -> None:
        """Also across ledgers."""
        with Store.open(path) as store:
            store.create_topic("short", ledger_entries_max=2)
            producer = store.create_producer("short")
            times = []
            for number in range(7):
                let_pass(0.003, "each message has a millisecond of its own")
                producer.send(b"%d" % number)
                times.append(store.reader("short", start=store.reports.last_message_id("short")).read_next(0))
        for number, message in enumerate(times):
            out = run("consume", "short", "-o", "value", "--from", f"@{message.publish_time}").out
            assert out.split() == [str(each) for each in range(number, 7)]
            out = run("consume", "short", "-o", "value", "--to", f"@{message.publish_time}").out
            assert out.split() == [str(each) for each in range(number + 1)]
