"""`txnctl producers open`."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from storage import IsolationLevel, Store
from tests.row_json import row_json
from tests.txnctl.commands.producers.producers_steps import PYTHON, ended, producing, rows, send, values
from tests.waiting import let_pass, wait_for
from txnctl.commands.produce.command import FIELDS as PRODUCED
from txnctl.commands.producers.open import SESSION
from txnctl.commands.topics.delete import DELETED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders", "payments")


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

    def test_a_token_in_a_file_is_in_no_list_of_arguments(self, run: Any, path: Path, tmp_path: Path) -> None:
        """For `produce`, `producers open --resume-file` and `producers close`; - is standard input."""
        file = tmp_path / "session"
        file.write_text(run("producers", "open", "orders", "--producer", "loader").out)
        words = ("produce", "orders", "--session-file")
        assert run(*words, str(file), "-m", "a").status == 0
        assert run(*words, "-", "-m", "b", stdin=file.read_bytes()).status == 0
        assert run(*words, str(file), stdin=b"c\n").status == 0
        assert run(*words, "-", stdin=b"d\n").status == 2
        assert run(*words, str(file), "-m", "e", "--session", file.read_text().strip()).status == 2
        assert values(path) == [b"a", b"b", b"c"]
        assert [row["producerName"] for row in rows(path)] == ["loader"]
        assert run("producers", "close", "--session-file", str(file)).status == 0
        assert rows(path) == []
        file.write_text(run("producers", "open", "orders", "--lease", "1ms").out)
        let_pass(0.005, "the lease")
        assert run("producers", "open", "orders", "--resume-file", str(file)).status == 0
        assert [(row["state"], row["epoch"]) for row in rows(path)] == [("leased", 1)]

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

    def test_an_expired_lease_goes_to_the_next_comer(self, run: Any, path: Path) -> None:
        """And whoever still uses the token is fenced."""
        token = self.open(run, "--lease", "1ms")
        let_pass(0.005, "the lease")
        assert [row["state"] for row in rows(path)] == ["expired"]
        assert run("produce", "orders", "-m", "a", "--access-mode", "exclusive").status == 0
        outcome = run("produce", "orders", "-m", "b", "--session", token, "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "producer-fenced")
        assert values(path) == [b"a"]

    def test_an_expired_lease_that_nobody_took_goes_on(self, run: Any, path: Path) -> None:
        """Under the same epoch."""
        token = self.open(run, "--lease", "1ms")
        let_pass(0.005, "the lease")
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
        let_pass(0.005, "the lease")
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


class TestTopics:
    """What the reports about topics say of producers."""

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
