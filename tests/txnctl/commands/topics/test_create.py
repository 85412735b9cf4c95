"""`txnctl topics create`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store

pytestmark = pytest.mark.usefixtures("path")


class TestCreate:
    """`topics create`."""

    def test_it_creates_the_topic_and_says_so(self, run: Any, path: Path) -> None:
        """A sentence for people, an object for programs."""
        assert run("topics", "create", "orders").out == "Created topic orders.\n"
        made = run("topics", "create", "persistent://bank/core/payments", "-o", "json").json
        assert made == {
            "topic": "persistent://bank/core/payments",
            "name": "persistent://bank/core/payments",
            "created": True,
        }
        assert run("topics", "create", "third", "-o", "name").out == "third\n"
        with Store.open(path) as store:
            assert store.topics() == ["persistent://bank/core/payments", "orders", "third"]

    def test_creating_it_again_is_a_conflict(self, run: Any) -> None:
        """Also by its full name; the topic stays as it is."""
        assert run("topics", "create", "orders").status == 0
        again = run("topics", "create", "persistent://public/default/orders", "-o", "json")
        assert again.status == 4
        assert again.error["code"] == "already-exists"

    def test_a_limit_rolls_the_ledger_over(self, run: Any, path: Path) -> None:
        """`--ledger-entries 2` puts the third entry into the second ledger."""
        assert run("topics", "create", "orders", "--ledger-entries", "2").status == 0
        with Store.open(path) as store:
            ids = [str(store.create_producer("orders").send(b"x")) for _ in range(3)]
        assert ids == ["1:0", "1:1", "2:0"]

    @pytest.mark.parametrize(
        "words",
        [
            ("--ledger-entries", "0"),
            ("--ledger-entries", "many"),
            ("--ledger-bytes", "-1"),
            ("--ledger-bytes", "1 GB"),
            ("--ledger-age", "1"),
            ("--ledger-age", "yesterday"),
        ],
        ids=" ".join,
    )
    def test_a_limit_that_is_none_is_bad_input(self, run: Any, words: tuple[str, ...]) -> None:
        """And no topic is created."""
        assert run("topics", "create", "orders", *words).status == 2
        assert run("topics", "list", "-o", "json").json == []
