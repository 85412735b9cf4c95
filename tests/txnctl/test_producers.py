"""`txnctl producers` and the access modes of `produce`: who gets a topic, who is told what, and what an operator sees."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, AccessMode, IsolationLevel, Store
from tests.row_json import row_json
from tests.txnctl.processes import wait_for
from txnctl.commands.produce.command import FIELDS as PRODUCED
from txnctl.commands.producers.close import CLOSED
from txnctl.commands.producers.fence import FENCED
from txnctl.commands.producers.list import LISTED
from txnctl.commands.producers.show import SHOWN
from txnctl.commands.topics.delete import DELETED
from txnctl.commands.topics.stats import STATS
from txnctl.fields.producer import SESSION
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")
TOPICS = ("orders", "payments")

PYTHON = [sys.executable, "-m", "txnctl"]


def rows(path: Path) -> list[dict[str, Any]]:
    """Who is connected to `orders`, and who waits."""
    with Store.open(path, read_only=True) as store:
        return row_json(store.reports.list_producers("orders"))


def values(path: Path, topic: str = "orders") -> list[bytes | None]:
    with Store.open(path, read_only=True) as store:
        return [message.value for message in store.reader(topic)]


@contextmanager
def producing(path: Path, *words: str, waits: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """`txnctl produce orders` that reads from a pipe: connected, or waiting for its turn."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    before = {row["sessionId"] for row in rows(path)}
    with subprocess.Popen([*PYTHON, "produce", "orders", *words], **streams) as process:
        try:
            wait_for(
                lambda: any(
                    row["sessionId"] not in before and row["isWaiting"] is waits for row in rows(path)
                ),
                "it is there",
            )
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> tuple[int, str]:
    """Its exit code and what it said."""
    _, err = process.communicate(stdin, timeout=30)
    return process.returncode, err.decode()


def send(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


class TestModes:
    """`produce --access-mode`."""

    def test_shared_is_what_it_was(self, run: Any, path: Path) -> None:
        """The default; several at once, and no epoch."""
        with producing(path) as other:
            row = run("produce", "orders", "-m", "a", "-o", "json").json
            assert not undeclared(row, PRODUCED)
            assert (row["accessMode"], row["topicEpoch"]) == ("Shared", None)
            assert ended(other, b"b\n")[0] == 0
        assert values(path) == [b"a", b"b"]
        assert rows(path) == []

    @pytest.mark.parametrize("mode", ["Exclusive", "exclusive", "WaitForExclusive", "wait-for-exclusive",
                                      "EXCLUSIVE_WITH_FENCING", "ExclusiveWithFencing"])  # fmt: skip
    def test_each_owner_has_the_next_epoch(self, run: Any, path: Path, mode: str) -> None:
        """Of a free topic any exclusive mode makes the owner, in every spelling; it leaves when it ends."""
        for epoch in range(2):
            row = run("produce", "orders", "-m", "a", "--access-mode", mode, "-o", "json").json
            assert row["accessMode"].lower() == mode.replace("-", "").replace("_", "").lower()
            assert row["topicEpoch"] == epoch
        assert rows(path) == []
        with Store.open(path, read_only=True) as store:
            assert [row["endedBy"] for row in row_json(store.reports.ownership_history("orders"))] == [
                "closed",
                "closed",
            ]

    def test_an_unknown_mode_lists_those_there_are(self, run: Any) -> None:
        """Exit 2."""
        outcome = run("produce", "orders", "-m", "a", "--access-mode", "alone")
        assert outcome.status == 2
        assert "Shared, Exclusive, WaitForExclusive, ExclusiveWithFencing" in outcome.err

    @pytest.mark.parametrize(
        "words", [("-m", "b"), ("-m", "b", "--access-mode", "exclusive"), ("--access-mode", "Shared"), ()]
    )
    def test_an_exclusive_owner_keeps_others_out(self, run: Any, path: Path, words: tuple[str, ...]) -> None:
        """Exit 4 at once, naming the owner and the command that tells more; nothing is stored."""
        with producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner:
            refused = run("produce", "orders", *words, "-o", "json", stdin=b"b\n")
            assert (refused.status, refused.error["code"]) == (4, "producer-busy")
            assert refused.error["details"]["owner"] == "loader"
            assert "loader" in refused.error["message"]
            assert str(owner.pid) in refused.error["message"]
            assert "txnctl producers show orders" in refused.error["hint"]
            assert ended(owner, b"a\n")[0] == 0
        assert values(path) == [b"a"]

    def test_shared_producers_refuse_an_exclusive_one(self, run: Any, path: Path) -> None:
        """It is told how to wait."""
        with producing(path, "--producer", "first"):
            refused = run("produce", "orders", "-m", "b", "--access-mode", "exclusive")
            assert refused.status == 4
            assert "first (Shared" in refused.err
            assert "WaitForExclusive" in refused.err
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.topic_stats("orders"))["topicEpoch"] is None

    def test_the_same_name_twice_is_refused(self, run: Any, path: Path) -> None:
        """Also among Shared producers, also for a single message."""
        with producing(path, "--producer", "loader"):
            for words in (("-m", "b"), ("--input", "lines")):
                outcome = run("produce", "orders", "--producer", "loader", *words, "-o", "json")
                assert (outcome.status, outcome.error["code"]) == (4, "producer-busy")

    def test_who_is_fenced_midway_is_told_with_the_last_line_stored(self, run: Any, path: Path) -> None:
        """Exit 4; what it stored before stands, what it reads after is never stored."""
        with producing(path, "--access-mode", "exclusive", "--producer", "old") as old:
            send(old, b"1\n2\n")
            wait_for(lambda: values(path) == [b"1", b"2"], "a slow pipe's lines are stored")
            fencing = ("--access-mode", "exclusive-with-fencing", "--producer", "new")
            assert run("produce", "orders", "-m", "new", *fencing).status == 0
            status, err = ended(old, b"3\n")
        assert status == 4
        assert "at least 2 messages are stored, the last one from line 2" in err
        assert "producer old of topic orders is fenced" in err
        assert "txnctl producers show orders" in err
        assert values(path) == [b"1", b"2", b"new"]

    def test_fencing_aborts_an_atomic_run(self, run: Any, path: Path) -> None:
        """Exit 4; nothing of it is visible, then or later."""
        with producing(path, "--access-mode", "exclusive", "--atomic") as old:
            send(old, b"1\n")
            wait_for(lambda: bool(run("txn", "list", "-o", "json").json), "it is in a transaction")
            assert run("produce", "orders", "-m", "new", "--access-mode", "exclusivewithfencing").status == 0
            assert run("txn", "list", "--ended", "-o", "json").json[0]["reason"] == "fenced"
            status, err = ended(old, b"2\n")
        assert status == 4
        assert "fenced" in err
        assert values(path) == [b"new"]

    def test_a_take_over_spares_the_transaction_of_its_own(self, run: Any, path: Path) -> None:
        """Named with --txn."""
        txn = run("txn", "begin").out.strip()
        run("produce", "orders", "-m", "a", "--txn", txn)
        assert (
            run("produce", "orders", "-m", "b", "--txn", txn, "--access-mode", "exclusivewithfencing").status
            == 0
        )
        assert run("txn", "commit", txn).status == 0
        assert values(path) == [b"a", b"b"]

    @pytest.mark.parametrize("words", [("produce", "orders", "-m", "x"), ("producers", "open", "orders")])
    def test_a_transaction_that_is_over_takes_nothing_from_others(
        self, run: Any, path: Path, words: tuple[str, ...]
    ) -> None:
        """Exit 4 before anybody is evicted."""
        txn = run("txn", "begin").out.strip()
        run("txn", "commit", txn)
        run("producers", "open", "orders", "--producer", "loader")
        outcome = run(*words, "--txn", txn, "--access-mode", "exclusivewithfencing", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "transaction-not-open")
        assert [row["producerName"] for row in rows(path)] == ["loader"]

    def test_a_refused_one_creates_and_stores_nothing(self, run: Any, path: Path) -> None:
        """An epoch that cannot be, with --create: no topic."""
        outcome = run("produce", "fresh", "-m", "a", "--create", "--access-mode", "exclusive", "--epoch", "5")
        assert outcome.status == 2
        assert run("topics", "list", "-o", "name").out == "orders\npayments\n"


class TestEpoch:
    """`produce --epoch`: only if nobody took over."""

    def test_the_topics_own_goes_on(self, run: Any) -> None:
        """Under the next epoch."""
        words = ("produce", "orders", "-m", "a", "--access-mode", "exclusive", "-o", "json")
        assert run(*words).json["topicEpoch"] == 0
        assert run(*words, "--epoch", "0").json["topicEpoch"] == 1

    def test_an_older_one_is_fenced_and_evicts_nobody(self, run: Any, path: Path) -> None:
        """Exit 4, in every mode, although it would fence."""
        for _ in range(2):
            run("produce", "orders", "-m", "a", "--access-mode", "exclusive")
        with producing(path, "--access-mode", "exclusive") as owner:
            for mode in ("exclusive", "wait-for-exclusive", "exclusive-with-fencing"):
                outcome = run(
                    "produce", "orders", "-m", "b", "--access-mode", mode, "--epoch", "0", "-o", "json"
                )
                assert (outcome.status, outcome.error["code"]) == (4, "producer-fenced")
            assert ended(owner, b"c\n")[0] == 0
        assert values(path) == [b"a", b"a", b"c"]

    @pytest.mark.parametrize(
        "words", [("--access-mode", "exclusive", "--epoch", "7"), ("--epoch", "0"), ("--epoch", "-1")]
    )
    def test_what_makes_no_sense_is_bad_input(self, run: Any, words: tuple[str, ...]) -> None:
        """A higher one than the topic ever had; one of a Shared producer; a negative one."""
        run("produce", "orders", "-m", "a", "--access-mode", "exclusive")
        assert run("produce", "orders", "-m", "b", *words).status == 2


class TestWaiting:
    """`--access-mode WaitForExclusive`."""

    WAITS = ("--access-mode", "wait-for-exclusive")

    def test_it_says_for_whom_and_goes_on_when_that_one_leaves(self, path: Path) -> None:
        """The note is on standard error, once; the messages follow the owner's."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner,
            producing(path, *self.WAITS, waits=True) as waiting,
        ):
            assert ended(owner, b"first\n")[0] == 0
            status, err = ended(waiting, b"second\n")
        assert status == 0
        assert err.count("waiting for orders behind loader (Exclusive, ") == 1
        assert values(path) == [b"first", b"second"]

    def test_it_waits_for_shared_ones_too(self, path: Path) -> None:
        """Promoted when the last of them leaves; meanwhile no other Shared one gets in."""
        with producing(path) as shared, producing(path, *self.WAITS, waits=True) as waiting:
            refused = subprocess.run(
                [*PYTHON, "produce", "orders", "-m", "x"], capture_output=True, check=False, timeout=30
            )
            assert refused.returncode == 4
            assert ended(shared, b"first\n")[0] == 0
            assert ended(waiting, b"second\n")[0] == 0
        assert values(path) == [b"first", b"second"]

    def test_it_gives_up_in_time(self, run: Any, path: Path) -> None:
        """Exit 7, retryable, naming who is in the way; its place is gone."""
        with producing(path, "--access-mode", "exclusive", "--producer", "loader"):
            outcome = run("produce", "orders", "-m", "b", *self.WAITS, "--timeout", "50ms", "-o", "json")
            assert (outcome.status, outcome.error["retryable"]) == (7, True)
            assert "loader" in outcome.error["message"]
            assert "giving up after 50ms" in outcome.err
            assert [row["producerName"] for row in rows(path)] == ["loader"]
        assert values(path) == []

    @pytest.mark.parametrize("words", [(), ("--access-mode", "exclusive")])
    def test_a_timeout_is_for_those_who_wait(self, run: Any, path: Path, words: tuple[str, ...]) -> None:
        """Exit 2, for produce and for open."""
        assert run("produce", "orders", "-m", "a", *words, "--timeout", "1s").status == 2
        assert run("producers", "open", "orders", *words, "--timeout", "1s").status == 2
        assert values(path) == []

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_an_interrupt_gives_the_place_up(self, path: Path, number: signal.Signals, code: int) -> None:
        """At once; nobody waits for who has gone."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader"),
            producing(path, *self.WAITS, waits=True) as waiting,
        ):
            waiting.send_signal(number)
            status, err = ended(waiting)
            assert status == code
            assert "Traceback" not in err
            assert [row["producerName"] for row in rows(path)] == ["loader"]
        assert values(path) == []

    def test_fencing_ends_the_wait(self, run: Any, path: Path) -> None:
        """Waiting ones get `producer-fenced` as well."""
        with (
            producing(path, "--access-mode", "exclusive"),
            producing(path, *self.WAITS, "-o", "json", waits=True) as waiting,
        ):
            assert run("produce", "orders", "-m", "x", "--access-mode", "exclusivewithfencing").status == 0
            status, err = ended(waiting)
        assert status == 4
        assert json.loads(err.splitlines()[-1])["code"] == "producer-fenced"

    def test_a_deleted_topic_ends_the_wait(self, run: Any, path: Path) -> None:
        """Deleting is refused while they are there; with --force they are evicted, and named."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader"),
            producing(path, *self.WAITS, "--producer", "next", waits=True) as waiting,
        ):
            refused = run("topics", "delete", "orders", "--yes", "-o", "json")
            assert (refused.status, refused.error["code"]) == (4, "object-held")
            row = run("topics", "delete", "orders", "--yes", "--force", "-o", "json").json
            assert not undeclared(row, DELETED)
            assert row["producersEvicted"] == ["loader", "next"]
            assert ended(waiting)[0] in (3, 4)


class TestSessions:
    """`producers open` and `close`, and what publishes through a session."""

    def open(self, run: Any, *words: str) -> str:
        """The token of a new session on `orders`."""
        outcome = run("producers", "open", "orders", *words)
        assert outcome.status == 0, outcome
        return str(outcome.out.strip())

    def test_open_prints_the_token_alone(self, run: Any) -> None:
        """In the default format and with -o name; JSON says more."""
        token = self.open(run)
        assert len(token.split()) == 1
        assert run("producers", "close", token).status == 0
        assert run("producers", "open", "orders", "-o", "name").out.count("\n") == 1
        row = run("producers", "open", "payments", "--lease", "5m", "--producer", "loader", "-o", "json").json
        assert not undeclared(row, SESSION)
        assert (row["name"], row["producerName"], row["accessMode"]) == ("payments", "loader", "Exclusive")
        assert (row["epoch"], row["isOwner"], row["state"], row["leaseMs"]) == (0, True, "leased", 300_000)

    @pytest.mark.parametrize("by", ["option", "environment"])
    def test_one_command_after_the_other_publishes_through_it(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch, by: str
    ) -> None:
        """Under its name and epoch, sequence ids going on; nobody else can publish meanwhile."""
        token = self.open(run, "--producer", "loader")
        words = ("--session", token) if by == "option" else ()
        if by == "environment":
            monkeypatch.setenv("TXNCTL_SESSION", token)
        found = [run("produce", "orders", "-m", "a", *words, "-o", "json").json for _ in range(2)]
        assert [(row["producerName"], row["topicEpoch"], row["lastSequenceId"]) for row in found] == [
            ("loader", 0, 0),
            ("loader", 0, 1),
        ]
        assert run("produce", "orders", *words, "--input", "raw", stdin=b"from a pipe").status == 0
        monkeypatch.delenv("TXNCTL_SESSION", raising=False)
        assert run("produce", "orders", "-m", "b").status == 4
        assert values(path) == [b"a", b"a", b"from a pipe"]
        assert [row["state"] for row in rows(path)] == ["leased"]

    def test_the_environments_counts_on_its_own_topic_only(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On another one it is as if it were not there; what is typed counts before it."""
        monkeypatch.setenv("TXNCTL_SESSION", self.open(run, "--producer", "loader"))
        row = run("produce", "payments", "-m", "a", "-o", "json").json
        assert (row["accessMode"], row["topicEpoch"]) == ("Shared", None)
        assert run("produce", "orders", "-m", "a", "--access-mode", "shared").status == 4
        assert run("produce", "orders", "-m", "a", "--producer", "loader").status == 0
        assert run("produce", "orders", "-m", "a", "--producer", "other").status == 2
        assert values(path) == [b"a"]

    @pytest.mark.parametrize(
        "words",
        [("--access-mode", "exclusive"), ("--epoch", "0"), ("--timeout", "1s"), ("--producer", "other")],
    )
    def test_what_is_connected_already_is_not_asked_how(self, run: Any, words: tuple[str, ...]) -> None:
        """Exit 2."""
        token = self.open(run)
        assert run("produce", "orders", "-m", "a", "--session", token, *words).status == 2

    @pytest.mark.parametrize("text", ["", "nonsense", "1-2", "1-2-zz", "0-1-00", "1-2-00-3", "٣-1-00", "-1"])
    def test_what_is_no_token_is_bad_input(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        """Exit 2, saying where it stands."""
        for words in (("produce", "orders", "-m", "a", "--session"), ("producers", "close", "--")):
            outcome = run(*words, text, "-o", "json") if words[0] == "produce" else run(*words, text)
            assert outcome.status == 2, outcome
            assert "Traceback" not in outcome.err
        if text:
            monkeypatch.setenv("TXNCTL_SESSION", text)
            outcome = run("produce", "orders", "-m", "a")
            assert outcome.status == 2
            assert "TXNCTL_SESSION: " in outcome.err

    def test_a_token_of_another_session_opens_nothing(self, run: Any, path: Path) -> None:
        """Neither a guessed secret, nor one of another topic."""
        token = self.open(run)
        store_id, topic, number, _ = token.split("-")
        assert (
            run("produce", "orders", "-m", "a", "--session", f"{store_id}-{topic}-{number}-{'0' * 16}").status
            == 4
        )
        assert run("produce", "payments", "-m", "a", "--session", token).status == 3
        assert values(path) == []

    def test_close_frees_the_topic(self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By token or environment, once; a dry run leaves it; the reason is in the audit trail."""
        token = self.open(run, "--producer", "loader")
        assert run("producers", "close").status == 2
        monkeypatch.setenv("TXNCTL_SESSION", token)
        dry = run("producers", "close", "--dry-run")
        assert dry.out.startswith("DRY RUN: nothing was changed.\n")
        assert "Would close the session of loader on orders (Exclusive, epoch 0)." in dry.out
        assert len(rows(path)) == 1
        row = run("producers", "close", "--reason", "done", "-o", "json").json
        assert not undeclared(row, CLOSED)
        assert (row["producerName"], row["dryRun"], row["next"]) == ("loader", False, None)
        assert rows(path) == []
        assert run("audit", "list", "-o", "json").json[0]["reason"] == "done"
        again = run("producers", "close", "-o", "json")
        assert (again.status, again.error["code"]) == (3, "session-not-found")
        monkeypatch.delenv("TXNCTL_SESSION")
        fenced = run("produce", "orders", "-m", "a", "--session", token, "-o", "json")
        assert (fenced.status, fenced.error["code"]) == (4, "producer-fenced")
        assert run("produce", "orders", "-m", "a").status == 0

    def test_an_expired_lease_goes_to_the_next_comer(self, run: Any, path: Path) -> None:
        """And whoever still uses the token is fenced."""
        token = self.open(run, "--lease", "1ms")
        time.sleep(0.005)
        assert [row["state"] for row in rows(path)] == ["expired"]
        assert run("produce", "orders", "-m", "a", "--access-mode", "exclusive").status == 0
        outcome = run("produce", "orders", "-m", "b", "--session", token, "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "producer-fenced")
        assert values(path) == [b"a"]

    def test_an_expired_lease_that_nobody_took_goes_on(self, run: Any, path: Path) -> None:
        """Under the same epoch."""
        token = self.open(run, "--lease", "1ms")
        time.sleep(0.005)
        assert run("produce", "orders", "-m", "a", "--session", token, "-o", "json").json["topicEpoch"] == 0
        assert values(path) == [b"a"]

    @pytest.mark.parametrize("lease", ["0s", "25h", "soon", "-1s"])
    def test_a_lease_has_bounds(self, run: Any, path: Path, lease: str) -> None:
        """Exit 2, and no session."""
        assert run("producers", "open", "orders", "--lease", lease).status == 2
        assert rows(path) == []

    def test_resuming_keeps_the_epoch(self, run: Any, path: Path) -> None:
        """While it is connected it is busy; after its lease it goes on as it was; after somebody produced, never."""
        token = self.open(run, "--producer", "loader", "--lease", "1ms")
        time.sleep(0.005)
        again = run("producers", "open", "orders", "--resume", token, "-o", "json").json
        assert (again["producerName"], again["epoch"]) == ("loader", 0)
        busy = run("producers", "open", "orders", "--resume", again["session"], "-o", "json")
        assert (busy.status, busy.error["code"]) == (4, "producer-busy")
        assert run("producers", "close", again["session"]).status == 0
        assert run("produce", "orders", "-m", "by another").status == 0
        late = run("producers", "open", "orders", "--resume", again["session"], "-o", "json")
        assert (late.status, late.error["code"]) == (4, "producer-fenced")
        assert values(path) == [b"by another"]

    def test_a_waiting_session_is_opened_in_its_turn(self, run: Any, path: Path) -> None:
        """WaitForExclusive: open prints nothing until then; close names who is next."""
        token = self.open(run)
        waits = [*PYTHON, "producers", "open", "orders", "--access-mode", "WaitForExclusive", "-o", "json"]
        with subprocess.Popen(
            [*waits, "--producer", "second"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as waiting:
            wait_for(lambda: len(rows(path)) == 2, "it waits")
            assert "Next is second." in run("producers", "close", token).out
            out, err = waiting.communicate(timeout=30)
        row = json.loads(out)
        assert (row["producerName"], row["epoch"], row["state"]) == ("second", 1, "leased")
        assert b"waiting for orders behind producer-" in err
        assert run("produce", "orders", "-m", "a", "--session", row["session"]).status == 0

    def test_who_led_a_deleted_topic_does_not_slip_in_again(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Created again, it is another topic: the environment's session is fenced, not passed over."""
        monkeypatch.setenv("TXNCTL_SESSION", self.open(run))
        assert run("topics", "delete", "orders", "--yes", "--force").status == 0
        assert run("topics", "create", "orders").status == 0
        outcome = run("produce", "orders", "-m", "a", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "producer-fenced")
        assert "unset TXNCTL_SESSION" in outcome.error["hint"]
        assert values(path) == []

    def test_sequence_ids_count_under_the_sessions_name(self, run: Any, path: Path) -> None:
        """Without --producer; sent again, a line is left out."""
        token = self.open(run, "--producer", "loader")
        words = ("produce", "orders", "-m", "a", "-m", "b", "--session", token, "--sequence-id", "0")
        assert run(*words).status == 0
        row = run(*words, "-o", "json").json
        assert (row["messages"], row["duplicates"]) == (0, 2)
        assert values(path) == [b"a", b"b"]

    def test_config_show_says_where_the_session_comes_from(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From TXNCTL_SESSION, or not set."""
        found = {row["name"]: row for row in run("config", "show", "-o", "json").json}["session"]
        assert (found["value"], found["source"], found["variable"]) == (None, "default", "TXNCTL_SESSION")
        monkeypatch.setenv("TXNCTL_SESSION", "1-2-00ff")
        found = {row["name"]: row for row in run("config", "show", "-o", "json").json}["session"]
        assert (found["value"], found["source"]) == ("1-2-00ff", "environment TXNCTL_SESSION")


class TestList:
    """`producers list`."""

    def test_nobody_is_success(self, run: Any) -> None:
        """An empty array, or a note."""
        assert run("producers", "list", "-o", "json").json == []
        outcome = run("producers", "list", "orders")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no producers are connected to orders" in outcome.err
        assert run("producers", "list", "nowhere").status == 3

    def test_table_and_json_agree(self, run: Any, path: Path) -> None:
        """ProcessIdentity, waiting one with its place, a Shared one of another topic, each with what is proven of it."""
        with Store.open(path) as store:
            store.create_producer("payments", producer_name="shared").send(b"x")
            assert run("producers", "open", "orders", "--producer", "loader").status == 0
            with producing(
                path, "--access-mode", "wait-for-exclusive", "--producer", "next", waits=True
            ) as waiting:
                found = run("producers", "list", "-o", "json").json
                assert not undeclared(found[0], LISTED)
                lines = run("producers", "list").out.splitlines()
                assert run("producers", "list", "-o", "name").out == "loader\nnext\nshared\n"
                assert run("producers", "list", "payments", "-o", "name").out == "shared\n"
                waiting.send_signal(signal.SIGSTOP)
                wait_for(lambda: rows(path)[1]["state"] == "stopped", "it is called stopped")
                assert "stopped" in run("producers", "list").out
        assert [(row["name"], row["producerName"], row["state"], row["place"]) for row in found] == [
            ("orders", "loader", "leased", None),
            ("orders", "next", "alive", 1),
            ("payments", "shared", "alive", None),
        ]
        assert lines[0].split() == [
            "TOPIC", "PRODUCER", "MODE", "ROLE", "EPOCH", "OWNER", "PROGRAM", "ALIVE", "CONNECTED", "LAST", "PUBLISH"
        ]  # fmt: skip
        owner, following, shared = lines[1:]
        for line, row, cells in (
            (owner, found[0], ("loader", "Exclusive", "owner", "lease ")),
            (following, found[1], ("next", "WaitForExclusive", "waiting 1", "yes")),
            (shared, found[2], ("shared", "Shared", "shared", "yes")),
        ):
            assert f"{row['host']}:{row['pid']}" in line
            for cell in cells:
                assert f" {cell}" in line

    def test_names_cannot_drive_a_terminal(self, run: Any, path: Path) -> None:
        """A producer's program may be called anything."""
        with Store.open(path, program="evil\x1b[2J") as store, store.create_producer("orders"):
            for command in ("list", "show"):
                out = run("producers", command, "orders").out
                assert "evil" in out
                assert "\x1b" not in out


class TestShow:
    """`producers show`: why a producer cannot connect, on one screen."""

    def test_of_a_free_topic(self, run: Any) -> None:
        """Everybody may come, and nothing needs doing."""
        row = run("producers", "show", "orders", "-o", "json").json
        assert not undeclared(row, SHOWN)
        assert {field.name for field in SHOWN} == set(row)
        assert (row["topicEpoch"], row["owner"], row["history"], row["next"]) == (None, None, [], None)
        assert {each["accessMode"]: each["result"] for each in row["admission"]} == {
            "Shared": "connects", "Exclusive": "owns", "WaitForExclusive": "owns", "ExclusiveWithFencing": "owns"
        }  # fmt: skip
        out = run("producers", "show", "orders").out
        assert "no topicEpoch yet, nobody is connected" in out
        assert "Next" not in out
        assert run("producers", "show", "nowhere").status == 3

    def test_it_names_the_owner_and_what_to_do(self, run: Any, path: Path) -> None:
        """What each mode would meet is what it does meet; the next command can be typed as it stands."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner,
            producing(path, "--access-mode", "wait-for-exclusive", "--producer", "second", waits=True),
        ):
            row = run("producers", "show", "orders", "-o", "json").json
            out = run("producers", "show", "orders").out
            met = {
                mode: run("produce", "orders", "-m", "x", "--access-mode", mode, *timeout).status
                for mode, timeout in (
                    ("Shared", ()),
                    ("Exclusive", ()),
                    ("WaitForExclusive", ("--timeout", "10ms")),
                )
            }
            assert run(*row["next"].split()[1:]).status == 0
        assert {each["accessMode"]: each["result"] for each in row["admission"]} == {
            "Shared": "busy", "Exclusive": "busy", "WaitForExclusive": "waits", "ExclusiveWithFencing": "takes over"
        }  # fmt: skip
        assert met == {"Shared": 4, "Exclusive": 4, "WaitForExclusive": 7}
        assert (row["owner"]["producerName"], row["owner"]["pid"]) == ("loader", owner.pid)
        assert (row["waitingPublishers"], row["waiting"][0]["producerName"]) == (1, "second")
        assert "topicEpoch 0, owned by loader, 1 waiting" in out
        lines = [" ".join(line.split()) for line in out.splitlines()]
        assert "Exclusive be refused: loader has the topic for itself" in lines
        assert "WaitForExclusive wait: loader has the topic for itself, 1 before it" in lines
        assert "ExclusiveWithFencing evict 2 producers and own the topic" in lines
        assert out.endswith("Next: txnctl producers fence orders --dry-run\n")

    def test_a_stopped_owner_is_explained(self, run: Any, path: Path) -> None:
        """It keeps its place; with the command that lets it go on."""
        with producing(path, "--access-mode", "exclusive") as owner:
            owner.send_signal(signal.SIGSTOP)
            wait_for(lambda: rows(path)[0]["state"] == "stopped", "it is called stopped")
            out = run("producers", "show", "orders").out
            assert f"kill -CONT {owner.pid} lets it go on" in out
            assert "\x1b[33mstopped\x1b[0m" in run("producers", "show", "orders", "--color", "always").out

    def test_a_dead_owner_is_in_nobodys_way(self, run: Any, path: Path) -> None:
        """Killed outright, it shows as dead at once, and the next one gets the topic."""
        with producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner:
            owner.kill()
            owner.wait()
            row = run("producers", "show", "orders", "-o", "json").json
            out = run("producers", "show", "orders").out
            listed = run("producers", "list").out.splitlines()[1]
        assert (row["owner"], row["next"]) == (None, None)
        assert "topicEpoch 0, nobody is connected" in out
        assert "was owner" in listed
        assert [each["state"] for each in row["publishers"]] == ["dead"]
        assert "DEAD" in out
        assert "loader is gone: the next producer that connects removes it" in out
        assert run("produce", "orders", "-m", "a", "--access-mode", "exclusive").status == 0
        history = run("producers", "show", "orders", "-o", "json").json["history"]
        assert [each["endedBy"] for each in history] == ["closed", "dead"]

    def test_the_history_tells_how_each_ended(self, run: Any) -> None:
        """The newest first; as many as asked for."""
        run("producers", "open", "orders", "--producer", "first")
        run("produce", "orders", "-m", "a", "--access-mode", "exclusivewithfencing", "--producer", "second")
        run("producers", "fence", "orders", "--yes")
        row = run("producers", "show", "orders", "-o", "json").json
        assert [
            (
                each["topicEpoch"],
                each["producerName"],
                each["accessMode"],
                each["endedBy"],
                each["takenOverBy"],
            )
            for each in row["history"]
        ] == [
            (2, None, "fence", "closed", None),
            (1, "second", "ExclusiveWithFencing", "closed", None),
            (0, "first", "Exclusive", "fenced", 1),
        ]
        lines = [" ".join(line.split()) for line in run("producers", "show", "orders").out.splitlines()]
        assert any("0 first Exclusive" in line and "fenced by epoch 1" in line for line in lines)
        assert any("1 second ExclusiveWithFencing" in line and "after 1:-1 to 1:0" in line for line in lines)
        limited = run("producers", "show", "orders", "-n", "1", "-o", "json").json
        assert [each["topicEpoch"] for each in limited["history"]] == [2]

    def test_a_long_history_is_there_when_asked_for(self, run: Any, path: Path) -> None:
        """More than one screen holds."""
        with Store.open(path) as store:
            for _ in range(30):
                store.create_producer("orders", access_mode=AccessMode.EXCLUSIVE).close()
        assert len(run("producers", "show", "orders", "-o", "json").json["history"]) == 10
        assert len(run("producers", "show", "orders", "-n", "25", "-o", "json").json["history"]) == 25
        assert len(run("producers", "show", "orders", "-n", "1000", "-o", "json").json["history"]) == 30

    def test_looking_changes_nothing(self, run: Any, path: Path) -> None:
        """Not a byte, whoever is there, dead ones too."""
        run("producers", "open", "orders", "--lease", "1ms")
        time.sleep(0.005)
        before = (path / "data.mdb").read_bytes()
        for command in (("list",), ("show", "orders")):
            assert run("producers", *command).status == 0
        assert (path / "data.mdb").read_bytes() == before


class TestFence:
    """`producers fence`."""

    def test_no_terminal_and_no_yes_is_refused_with_the_plan(self, run: Any, path: Path) -> None:
        """Code 9; nobody is evicted."""
        run("producers", "open", "orders", "--producer", "loader")
        outcome = run("producers", "fence", "orders")
        assert (outcome.status, outcome.out) == (9, "")
        assert "evicts    loader (Exclusive, " in outcome.err
        assert [row["producerName"] for row in rows(path)] == ["loader"]

    def test_the_dry_run_is_the_real_one(self, run: Any, path: Path) -> None:
        """With --waiting those too, transactions too; afterwards all of them are told."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader", "--atomic") as owner,
            producing(
                path, "--access-mode", "wait-for-exclusive", "--producer", "second", waits=True
            ) as waiting,
        ):
            send(owner, b"held\n")
            wait_for(lambda: bool(run("txn", "list", "--topic", "orders", "-o", "json").json), "it has sent")
            dry = run("producers", "fence", "orders", "--waiting", "--dry-run", "-o", "json").json
            out = run("producers", "fence", "orders", "--waiting", "--dry-run").out
            assert len(rows(path)) == 2
            words = ("--waiting", "--yes", "--reason", "hangs", "-o", "json")
            real = run("producers", "fence", "orders", *words).json
            assert rows(path) == []
            assert ended(owner, b"more\n")[0] == 4
            assert ended(waiting)[0] == 4
        for row in (dry, real):
            assert not undeclared(row, FENCED)
            assert (row["topicEpochBefore"], row["topicEpoch"]) == (0, 1)
            assert [each["producerName"] for each in row["evicted"]] == ["loader", "second"]
            assert row["transactionsAborted"] == ["0:1"]
        assert (dry["dryRun"], real["dryRun"]) == (True, False)
        assert out.startswith("DRY RUN: nothing was changed.\n\nFence the producers of orders\n")
        for text in (
            "raises    the epoch 0 -> 1",
            "evicts    loader (Exclusive, ",
            ", waiting, ",
            "aborts    0:1",
        ):
            assert text in out
        assert out.endswith('Run: txnctl producers fence orders --waiting --yes --reason "..."\n')
        assert values(path) == []
        audit = run("audit", "list", "-o", "json").json[0]
        assert (audit["action"], audit["target"], audit["reason"]) == ("producers fence", "orders", "hangs")
        assert run("produce", "orders", "-m", "free again").status == 0

    def test_the_plan_has_the_numbers_of_what_follows(self, run: Any, path: Path) -> None:
        """What is discarded and released, and what each subscription is handed then."""
        with Store.open(path) as store:
            store.admin.subscriptions.create_subscription("orders", "billing", initial_position=EARLIEST)
        run("transactions", "begin")
        run("produce", "orders", "-m", "half", "--txn", "0:1")
        for value in ("one", "two"):
            run("produce", "orders", "-m", value)
        dry = run("producers", "fence", "orders", "--dry-run", "-o", "json").json
        out = run("producers", "fence", "orders", "--dry-run").out
        real = run("producers", "fence", "orders", "--yes", "-o", "json").json
        lag = run("subscriptions", "lag", "orders", "billing", "-o", "json").json
        assert not undeclared(real, FENCED)
        assert {**dry, "dryRun": False} == real
        assert (real["messagesDiscarded"], real["acknowledgementsReleased"]) == (1, 0)
        assert "  discards  1 message\n" in out
        assert "  unblocks  2 of 2  billing 0 -> 2 visible\n" in out
        assert (lag["visible"], lag["blocked"]) == (2, 0)

    def test_who_waits_is_next(self, run: Any, path: Path) -> None:
        """The stopped owner is evicted; the waiting producer keeps its place, owns the topic, and stores its message."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "loader") as owner,
            producing(
                path, "--access-mode", "wait-for-exclusive", "--producer", "second", waits=True
            ) as waiting,
        ):
            owner.send_signal(signal.SIGSTOP)
            wait_for(lambda: rows(path)[0]["state"] == "stopped", "it is called stopped")
            out = run("producers", "fence", "orders", "--dry-run").out
            row = run("producers", "fence", "orders", "--yes", "-o", "json").json
            assert [each["producerName"] for each in row["evicted"]] == ["loader"]
            assert [each["producerName"] for each in row["waiting"]] == ["second"]
            assert ended(waiting, b"kept\n")[0] == 0
            owner.send_signal(signal.SIGCONT)
            assert ended(owner, b"lost\n")[0] == 4
        assert "  keeps     second (WaitForExclusive, waiting, " in out
        assert "  next      second owns the topic within a second\n" in out
        assert values(path) == [b"kept"]

    def test_a_stopped_one_that_waits_keeps_its_place(self, run: Any, path: Path) -> None:
        """Nobody is promoted before it: the plan says so, and --waiting evicts it."""
        with (
            producing(path, "--access-mode", "exclusive"),
            producing(
                path, "--access-mode", "wait-for-exclusive", "--producer", "second", waits=True
            ) as waiting,
        ):
            waiting.send_signal(signal.SIGSTOP)
            wait_for(lambda: rows(path)[1]["state"] == "stopped", "it is called stopped")
            out = run("producers", "fence", "orders", "--yes").out
            shown = run("producers", "show", "orders", "-o", "json").json
            found = run("doctor", "-o", "json").json["findings"]
            assert f"second, once it is continued: kill -CONT {waiting.pid}; or --waiting evicts it" in out
            assert shown["next"] == "txnctl producers fence orders --waiting --dry-run"
            (told,) = [each["why"] for each in found if each["code"] == "producers-waiting"]
            assert told.endswith("txnctl producers fence orders --waiting.")
            assert run(*shown["next"].split()[1:]).status == 0
            assert run("producers", "fence", "orders", "--waiting", "--yes").status == 0
            assert rows(path) == []

    def test_a_free_topic_can_be_fenced(self, run: Any) -> None:
        """Who was connected once cannot come back with its epoch."""
        run("produce", "orders", "-m", "a", "--access-mode", "exclusive")
        assert "evicted   nobody" in run("producers", "fence", "orders", "--yes").out
        words = ("--access-mode", "exclusive", "--epoch", "0")
        assert run("produce", "orders", "-m", "b", *words).status == 4
        assert run("producers", "fence", "nowhere", "--yes").status == 3

    @pytest.mark.parametrize(("typed", "status", "left"), [(b"y\n", 0, 0), (b"n\n", 9, 1)])
    def test_on_a_terminal_it_asks(self, path: Path, typed: bytes, status: int, left: int) -> None:
        """With the plan first."""
        with Store.open(path) as store:
            store.open_session("orders")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [*PYTHON, "producers", "fence", "orders"])
        seen = b""
        while b"[y/N] " not in seen:
            seen += os.read(terminal, 1000)
        assert b"raises    the epoch 0 -> 1" in seen
        os.write(terminal, typed)
        while True:
            try:
                if not os.read(terminal, 1000):
                    break
            except OSError:
                break
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status
        assert len(rows(path)) == left


class TestTopics:
    """What the reports about topics say of producers."""

    def test_stats_have_the_table_of_the_contract(self, run: Any, path: Path) -> None:
        """PRODUCER MODE EPOCH OWNER ALIVE LAST PUBLISH; Pulsar's names in JSON."""
        with (
            producing(path, "--access-mode", "exclusive", "--producer", "payments-loader") as owner,
            producing(path, "--access-mode", "wait-for-exclusive", waits=True),
        ):
            send(owner, b"one\n")
            wait_for(lambda: values(path) == [b"one"], "stored")
            row = run("topics", "stats", "orders", "-o", "json").json
            assert not undeclared(row, STATS)
            out = run("topics", "stats", "orders").out
            shown = run("topics", "show", "orders", "-o", "json").json
            listed = run("topics", "list", "-o", "json").json[0]
        (publisher,) = row["publishers"]
        assert (publisher["accessMode"], publisher["producerName"], publisher["epoch"]) == (
            "Exclusive",
            "payments-loader",
            0,
        )
        assert (publisher["state"], publisher["alive"]) == ("alive", True)
        assert publisher["connectedSinceMs"] <= publisher["lastPublishMs"] <= row["asOfMs"]
        assert (row["topicEpoch"], row["waitingPublishers"]) == (0, 1)
        lines = out.splitlines()
        assert lines[1].endswith("topicEpoch 0")
        at = next(index for index, line in enumerate(lines) if "PRODUCER" in line)
        assert lines[at].split() == ["PRODUCER", "MODE", "EPOCH", "OWNER", "ALIVE", "LAST", "PUBLISH"]
        cells = lines[at + 1].split()
        assert cells[:5] == ["payments-loader", "Exclusive", "0", f"{os.uname().nodename}:{owner.pid}", "yes"]
        assert "  1 producer waits for the topic" in lines
        assert lines[-1] == "Next: txnctl producers show orders"
        assert (shown["publishers"], shown["waitingPublishers"]) == (["payments-loader"], 1)
        assert listed["topicEpoch"] == 0

    def test_without_producers_there_is_no_table(self, run: Any) -> None:
        """A section that has nothing to say is left out."""
        assert "PRODUCER" not in run("topics", "stats", "orders").out

    @pytest.mark.parametrize("level", list(IsolationLevel))
    def test_consumers_do_not_matter(self, run: Any, path: Path, level: IsolationLevel) -> None:
        """Attached ones keep nobody out."""
        with Store.open(path) as store, store.subscribe("orders", "s", subscription_isolation_level=level):
            assert run("produce", "orders", "-m", "a", "--access-mode", "exclusive").status == 0


class TestErrors:
    """Every error of a producer is documented, and names the next command."""

    @pytest.mark.parametrize(
        ("code", "exit_code"), [("producer-busy", 4), ("producer-fenced", 4), ("session-not-found", 3)]
    )
    def test_it_is_explained(self, run: Any, code: str, exit_code: int) -> None:
        """With its exit code; not retryable."""
        row = run("errors", "explain", code, "-o", "json").json
        assert (row["exitCode"], row["retryable"]) == (exit_code, False)
