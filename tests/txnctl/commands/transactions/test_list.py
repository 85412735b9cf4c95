"""`txnctl transactions list`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.waiting import let_pass
from txnctl.fields.transaction import ROW
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestList:
    """`transactions list`."""

    def test_nothing_is_success(self, run: Any) -> None:
        """An empty array, or a note."""
        assert run("transactions", "list", "-o", "json").json == []
        outcome = run("transactions", "list")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no unfinished transactions" in outcome.err

    def test_unfinished_oldest_first_and_ended_newest_first(self, run: Any) -> None:
        """`--limit` and `--topic` choose."""
        for _ in range(4):
            run("transactions", "begin")
        run("transactions", "commit", "0:1")
        run("transactions", "abort", "0:2")
        assert run("transactions", "list", "-o", "name").out == "0:3\n0:4\n"
        assert run("transactions", "list", "-n", "1", "-o", "name").out == "0:3\n"
        assert run("transactions", "list", "--ended", "-o", "name").out == "0:2\n0:1\n"
        assert run("transactions", "list", "--topic", "orders", "-o", "name").out == ""
        assert run("transactions", "list", "--topic", "nowhere").status == 3

    def test_table_and_json_agree(self, run: Any, stuck: str) -> None:
        """Ids, counts, topics, owner."""
        rows = run("transactions", "list", "-o", "json").json
        assert [row["txnId"] for row in rows] == [stuck, "0:2"]
        assert not undeclared(rows[0], ROW)
        assert (rows[0]["messages"], rows[0]["acknowledgements"]) == (15, 15)
        assert rows[0]["topics"] == ["persistent://public/default/orders"]
        heading, first, _second = run("transactions", "list").out.splitlines()
        assert heading.split()[:5] == ["TXN", "AGE", "IDLE", "DEADLINE", "ALIVE"]
        assert first.split()[0] == stuck
        for cell in ("detached", rows[0]["owner"].split(" (")[0], "orders", "job=loader"):
            assert f" {cell}" in first

    def test_an_overdue_one_says_so_and_reading_does_not_end_it(self, run: Any) -> None:
        """Pure readers never write."""
        run("transactions", "begin", "--timeout", "1ms")
        let_pass(0.005, "the deadline")
        row = run("transactions", "list", "-o", "json").json[0]
        assert (row["state"], row["overdue"]) == ("OPEN", True)
        assert "OVERDUE" in run("transactions", "list").out
        assert "\x1b[1;31mOVERDUE\x1b[0m" in run("transactions", "list", "--color", "always").out
        assert "reap" in run("transactions", "show", "0:1").out
        assert run("transactions", "list", "-o", "json").json[0]["state"] == "OPEN"

    def test_labels_cannot_drive_a_terminal(self, run: Any) -> None:
        """Nor break the table."""
        run("transactions", "begin", "--label", "job=a\x1b[2Jb\nc")
        out = run("transactions", "list").out
        assert "job=a\\x1b[2Jb\\nc" in out
        assert len(out.splitlines()) == 2
        assert "job=a\\x1b[2Jb\\nc" in run("transactions", "show", "0:1").out

    def test_labels_owner_and_age_choose(self, run: Any) -> None:
        """All that is given must match; what matches nothing says what was asked for."""
        run("transactions", "begin", "--label", "job=loader", "--label", "run=7")
        run("transactions", "begin", "--label", "job=loader")
        run("transactions", "begin")

        def names(*words: str) -> list[str]:
            return run("transactions", "list", *words, "-o", "name").out.split()

        assert names("--label", "job=loader") == ["0:1", "0:2"]
        assert names("--label", "job=loader", "--label", "run=7") == ["0:1"]
        owner = run("transactions", "list", "-o", "json").json[0]["owner"]
        assert names("--owner", owner) == ["0:1", "0:2", "0:3"]
        assert names("--owner", "nobody@") == []
        assert names("--older-than", "1h") == []
        assert names("--older-than", "0s", "--label", "run=7", "--owner", owner.split("@")[0]) == ["0:1"]
        run("transactions", "commit", "0:2")
        assert names("--ended", "--label", "job=loader") == ["0:2"]
        outcome = run(
            "transactions", "list", "--label", "job=none", "--older-than", "90s", "--topic", "orders"
        )
        assert "no unfinished transactions on orders with label job=none older than 1m30s" in outcome.err
        assert run("transactions", "list", "--label", "a=1", "--label", "a=2").status == 2
        assert run("transactions", "list", "--label", "job").status == 2
