"""Reader: `txnctl/commands/consume/reader.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Reader, Store
from tests.row_json import row_json
from tests.txnctl.commands.consume.consume_steps import send, send_batch
from txnctl.commands.consume import reader
from txnctl.commands.consume.bounds import ReadRange
from txnctl.commands.consume.stop_condition import Patience

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestFollowing:
    """Lines that came during a wait."""

    def test_a_line_is_written_out_before_the_look_for_the_next(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The look takes as long as the line."""
        send(path, b"x", b"y")
        steps: list[str] = []

        class Recorded:
            def entry(self, *_: object) -> None:
                steps.append("line")

            def write_out(self) -> None:
                steps.append("written out")

        with Store.open(path, read_only=True) as store:
            following, look = store.reader("orders", start=EARLIEST), Reader._fill
            monkeypatch.setattr(Reader, "_fill", lambda reader: (steps.append("look"), look(reader))[1])
            patience: Any = Patience("orders", None, True, None)
            lines: Any = Recorded()
            assert following.has_message_available()
            bounds = ReadRange(EARLIEST, None)
            assert not reader._print_visible(following, lines, patience, bounds, is_awaited=True)
            lines.write_out()
            assert not following.has_message_available()
        assert steps == ["look", "line", "line", "written out", "look"]


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


class TestStart:
    """A position that the topic has not come to."""

    @pytest.mark.parametrize("to", ["1:3", "99:0", "1:9:3"])
    def test_a_start_beyond_the_end_is_said_to_be(self, run: Any, path: Path, to: str) -> None:
        """By `consume`, `topics peek` and `topics log`: nothing is there, and nothing before it is shown."""
        send_batch(path, 1)
        send_batch(path, 1)
        said = f"txnctl: {to} lies beyond the end of orders, 1:1: no message is there yet, and none before it is shown\n"
        for words in (
            ("consume", "orders", "--from", to),
            ("topics", "peek", "orders", "--from", to, "-o", "ndjson"),
            ("topics", "log", "orders", "--range", f"{to}..", "-o", "ndjson"),
        ):
            outcome = run(*words)
            assert (outcome.status, outcome.out) == (0, ""), words
            assert outcome.err.startswith(said), words

    @pytest.mark.parametrize("to", ["1:2", "1:1", "0:0", "earliest", "latest", "@2999-01-01"])
    def test_the_end_itself_is_not_beyond(self, run: Any, path: Path, to: str) -> None:
        """Whoever goes on behind the last message is told nothing."""
        send_batch(path, 1)
        send_batch(path, 1)
        assert "lies" not in run("consume", "orders", "--from", to).err
        assert "lies" not in run("topics", "peek", "orders", "--from", to).err
