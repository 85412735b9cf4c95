"""Reader: `txnctl/commands/consume/reader.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.txnctl.commands.consume.consume_steps import send_batch

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestReading:
    """Without -s."""

    def test_it_changes_nothing(self, run: Any, path: Path) -> None:
        """Read commands leave the files byte-identical."""
        send_batch(path, 10)
        before = {file: file.read_bytes() for file in path.iterdir() if file.name != "lock.mdb"}
        assert run("consume", "orders").status == 0
        assert {file: file.read_bytes() for file in path.iterdir() if file.name != "lock.mdb"} == before

    def test_the_transaction_of_the_environment_is_none_of_its_business(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A script inside `transactions run` may read."""
        monkeypatch.setenv("TXNCTL_TXN", "0:99")
        assert run("consume", "orders").status == 0

    @pytest.mark.parametrize(
        "words",
        [
            ("--txn", "0:1"),
            ("--ack", "none"),
            ("--exec", "true"),
            ("--consumer", "me"),
            ("--subscription-type", "shared"),
            ("-s", "s", "--to", "1:1"),
            ("-s", "s", "--on-error", "retry"),
            ("-s", "s", "--exec", "true", "--ack", "auto"),
            ("-f", "-o", "json"),
            ("-n", "0"),
        ],
    )
    def test_options_that_do_not_fit_are_refused(self, run: Any, path: Path, words: Sequence[str]) -> None:
        """Exit 2; no subscription comes into being."""
        assert run("consume", "orders", *words).status == 2
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.list_subscriptions("orders")) == []

    def test_what_is_not_there(self, run: Any) -> None:
        """Exit 3, with and without a subscription."""
        assert run("consume", "none").status == 3
        assert run("consume", "none", "-s", "s").status == 3
