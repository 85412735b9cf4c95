"""Tables in transactions, from the shell: isolation, priorities, the past, and one transaction over everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from storage.limits import FINALIZE_INLINE_MAX
from tests.waiting import let_pass

pytestmark = pytest.mark.usefixtures("path")


CHECKOUT = Path(__file__).parents[4]


@pytest.fixture
def path(verified_path: Path) -> Path:
    """A store with two accounts and two topics, which every command is told of, verified in full at the end."""
    with Store.open(verified_path) as store:
        for topic in ("requests", "settled"):
            store.create_topic(topic)
        store.create_table("accounts")
        store.table("accounts").put(b"B1", b"100")
        store.table("accounts").put(b"B2", b"20")
    return verified_path


@pytest.fixture
def shell(tmp_path: Path) -> Any:
    """Run a script as people write them, `txnctl` being ours: exit code, stdout, stderr."""
    program = tmp_path / "bin" / "txnctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m txnctl "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(CHECKOUT),
    }

    def run_script(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", script],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run_script


def begin(run: Any, *words: str) -> str:
    """The id of a new transaction."""
    outcome = run("transactions", "begin", *words)
    assert outcome.status == 0, outcome
    return str(outcome.out.strip())


def value(run: Any, key: str, *words: str) -> str:
    """What `get` prints."""
    outcome = run("tables", "get", "accounts", key, *words)
    assert outcome.status == 0, outcome
    return str(outcome.out.removesuffix("\n"))


class TestBegin:
    """`transactions begin --isolation --check --priority`."""

    @pytest.mark.parametrize(
        "spelling", ["read-committed", "READ_COMMITTED", "read_committed", "ReadCommitted"]
    )
    def test_named_constants_are_taken_in_any_spelling(self, run: Any, spelling: str) -> None:
        """They come back in the one."""
        row = run("transactions", "begin", "--isolation", spelling, "--check", "FULL", "-o", "json").json
        assert (row["isolation"], row["check"], row["priority"]) == ("READ_COMMITTED", "full", "medium")

    def test_what_is_not_said_is_serializable_and_medium(self, run: Any) -> None:
        """And a serializable one has no check mode."""
        row = run("transactions", "begin", "-o", "json").json
        assert (row["isolation"], row["check"], row["priority"]) == ("SERIALIZABLE", None, "medium")
        assert (
            run("transactions", "begin", "--isolation", "read-committed", "-o", "json").json["check"]
            == "minimal"
        )

    @pytest.mark.parametrize(
        "words",
        [
            ("--check", "full"),
            ("--check", "full", "--isolation", "serializable"),
            ("--isolation", "snapshot"),
            ("--priority", "urgent"),
            ("--isolation", "read-committed", "--check", "sometimes"),
        ],
        ids=" ".join,
    )
    def test_what_does_not_go_together_is_bad_input(self, run: Any, words: tuple[str, ...]) -> None:
        """Exit 2 with a hint, and nothing is begun."""
        outcome = run("transactions", "begin", *words, "-o", "json")
        assert outcome.status == 2
        assert outcome.error["hint"]
        assert run("transactions", "list", "-o", "json").json == []


class TestSerializable:
    """Reads and writes with --txn."""

    def test_it_sees_its_own_writes_and_the_moment_of_its_beginning(self, run: Any) -> None:
        """What commits later is not seen; what is not committed is seen by nobody else."""
        txn = begin(run)
        run("tables", "put", "accounts", "B2", "21")
        run("tables", "put", "accounts", "B1", "99", "--txn", txn)
        assert (value(run, "B1", "--txn", txn), value(run, "B2", "--txn", txn)) == ("99", "20")
        assert (value(run, "B1"), value(run, "B2")) == ("100", "21")
        rows = run("tables", "scan", "accounts", "--txn", txn, "-o", "json").json
        assert [(row["value"], row["txnId"]) for row in rows] == [("99", txn), ("20", "0:2")]
        run("transactions", "commit", txn)
        assert value(run, "B1") == "99"

    def test_the_environment_names_it(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """TXNCTL_TXN stands for --txn in get, put, rm, scan, export and import."""
        txn = begin(run)
        monkeypatch.setenv("TXNCTL_TXN", txn)
        assert run("tables", "put", "accounts", "B3", "3", "-o", "json").json["txnId"] == txn
        assert run("tables", "rm", "accounts", "B1", "-o", "json").json["txnId"] == txn
        imported = run("tables", "import", "accounts", "-o", "json", stdin=b'{"key":"B4","value":"4"}\n')
        assert imported.json == {"table": "accounts", "rows": 1, "txnId": txn, "transactionsAborted": []}
        assert run("tables", "get", "accounts", "B1").status == 3
        assert run("tables", "scan", "accounts", "-o", "name").out == "B2\nB3\nB4\n"
        assert len(run("tables", "export", "accounts").rows) == 3
        monkeypatch.delenv("TXNCTL_TXN")
        assert run("tables", "scan", "accounts", "-o", "name").out == "B1\nB2\n"

    def test_rm_knows_what_the_transaction_has_put_and_deleted(self, run: Any) -> None:
        """Its own deletion makes the key missing, its own put makes it there."""
        txn = begin(run)
        assert run("tables", "rm", "accounts", "B1", "--txn", txn).status == 0
        assert run("tables", "rm", "accounts", "B1", "--txn", txn).status == 3
        assert run("tables", "put", "accounts", "B1", "1", "--txn", txn, "--if-absent").status == 0
        assert run("tables", "rm", "accounts", "B1", "--txn", txn).status == 0
        assert run("transactions", "commit", txn).status == 0
        assert run("tables", "get", "accounts", "B1").status == 3

    def test_a_failed_condition_leaves_it_usable(self, run: Any) -> None:
        """Exit 4, and it can go on and commit."""
        txn = begin(run)
        assert run("tables", "put", "accounts", "B1", "1", "--if-absent", "--txn", txn).status == 4
        assert run("tables", "put", "accounts", "B2", "2", "--txn", txn).status == 0
        assert run("transactions", "commit", txn).status == 0
        assert (value(run, "B1"), value(run, "B2")) == ("100", "2")

    @pytest.mark.parametrize(
        ("first", "second", "winner"),
        [
            ("medium", "medium", "second"),
            ("high", "medium", "first"),
            ("low", "lowest", "first"),
            ("low", "highest", "second"),
            ("highest", "highest", "second"),
        ],
    )
    def test_priorities_decide_and_the_younger_wins_a_tie(
        self, run: Any, first: str, second: str, winner: str
    ) -> None:
        """The loser is told at once, or at its next operation; it never waits."""
        older, younger = begin(run, "--priority", first), begin(run, "--priority", second)
        assert run("tables", "put", "accounts", "B1", "older", "--txn", older).status == 0
        outcome = run("tables", "put", "accounts", "B1", "younger", "--txn", younger)
        assert outcome.status == (0 if winner == "second" else 4)
        committed = [run("transactions", "commit", txn).status for txn in (older, younger)]
        assert committed == ([4, 0] if winner == "second" else [0, 4])
        assert value(run, "B1") == ("younger" if winner == "second" else "older")

    def test_a_write_below_a_later_read_is_refused(self, run: Any) -> None:
        """No lost update, no write skew: exit 4, write-too-old, and the transaction is aborted."""
        older, younger = begin(run), begin(run)
        assert value(run, "B1", "--txn", younger) == "100"
        outcome = run("tables", "put", "accounts", "B1", "1", "--txn", older, "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "write-too-old")
        assert (outcome.error["retryable"], outcome.error["details"]["winner"]) == (True, younger)
        assert run("transactions", "commit", older).status == 4
        assert run("transactions", "commit", younger).status == 0
        assert run("tables", "history", "accounts", "-o", "json").json[0]["kind"] == "read"

    def test_a_scanned_range_is_protected(self, run: Any) -> None:
        """Nobody older can put a new key into it; elsewhere they can."""
        older, other, younger = begin(run), begin(run), begin(run)
        run("tables", "scan", "accounts", "--prefix", "B", "--txn", younger)
        assert run("tables", "put", "accounts", "C1", "1", "--txn", other).status == 0
        assert run("tables", "put", "accounts", "B11", "1", "--txn", older).status == 4


class TestReadCommitted:
    """Transactions that only read tables, and reads outside any."""

    def test_it_reads_what_is_committed_at_each_moment(self, run: Any) -> None:
        """And disturbs nobody: who writes afterwards, with an older timestamp, may."""
        writer = begin(run)
        reader = begin(run, "--isolation", "read-committed")
        assert value(run, "B1", "--txn", reader) == "100"
        run("tables", "put", "accounts", "B1", "7", "--txn", writer)
        assert value(run, "B1", "--txn", reader) == "100"
        assert run("transactions", "commit", writer).status == 0
        assert value(run, "B1", "--txn", reader) == "7"
        assert run("transactions", "commit", reader).status == 0

    @pytest.mark.parametrize(
        "words",
        [
            ("tables", "put", "accounts", "B1", "1"),
            ("tables", "rm", "accounts", "B1"),
            ("tables", "import", "accounts"),
            ("produce", "requests", "-m", "x"),
            ("consume", "requests", "-s", "s", "--from", "earliest"),
        ],
        ids=lambda words: words[0] + words[1],
    )
    def test_everything_that_changes_is_refused_with_advice(self, run: Any, words: tuple[str, ...]) -> None:
        """Exit 4: begin a serializable one."""
        run("produce", "requests", "-m", "hello")
        reader = begin(run, "--isolation", "read-committed")
        outcome = run(*words, "--txn", reader, stdin=b'{"key":"a","value":"b"}\n')
        assert outcome.status == 4, outcome
        assert "serializable" in outcome.err
        assert value(run, "B1") == "100"

    def test_its_deadline_ends_it(self, run: Any) -> None:
        """Exit 4."""
        reader = begin(run, "--isolation", "read-committed", "--timeout", "1ms")
        let_pass(0.01, "the deadline")
        assert run("tables", "get", "accounts", "B1", "--txn", reader).status == 4

    def test_check_modes_against_a_commit_that_is_not_finalised(self, run: Any, path: Path) -> None:
        """full and minimal see it, none the version before; the mode is the transaction's, or the command's."""
        with Store.open(path) as store:
            txn = store.begin_transaction()
            table = store.table("accounts")
            table.put(b"B1", b"new", txn=txn)
            for number in range(FINALIZE_INLINE_MAX):
                table.put(b"~%05d" % number, b"", txn=txn)
            store.commit_transaction(txn)
        assert value(run, "B1") == "new"
        for mode, seen in (("minimal", "new"), ("full", "new"), ("none", "100")):
            assert value(run, "B1", "--check", mode) == seen
            reader = begin(run, "--isolation", "read-committed", "--check", mode)
            assert value(run, "B1", "--txn", reader) == seen
            scanned = run("tables", "scan", "accounts", "-n", "1", "--txn", reader, "-o", "value")
            assert scanned.out == f"{seen}\n"

    def test_a_check_mode_in_a_serializable_transaction_is_bad_input(self, run: Any) -> None:
        """Exit 2."""
        assert run("tables", "get", "accounts", "B1", "--check", "full", "--txn", begin(run)).status == 2


class TestThePast:
    """`--at`."""

    def test_a_version_and_a_time_are_moments(self, run: Any) -> None:
        """What was committed then, deletions included; by version exactly, by time to the end of its millisecond."""
        first = run("tables", "get", "accounts", "B1", "-o", "json").json
        let_pass(0.002, "each change has a millisecond of its own")
        second = run("tables", "put", "accounts", "B1", "50", "-o", "json").json
        let_pass(0.002, "each change has a millisecond of its own")
        third = run("tables", "rm", "accounts", "B1", "-o", "json").json
        for moment in ("version", "versionAt", "versionMs"):
            assert value(run, "B1", "--at", str(first[moment])) == "100"
            assert value(run, "B1", "--at", str(second[moment])) == "50"
            assert run("tables", "get", "accounts", "B1", "--at", str(third[moment])).status == 3
        before = str(int(first["version"]) - 1)
        assert run("tables", "get", "accounts", "B1", "--at", before).status == 3
        rows = run("tables", "scan", "accounts", "--at", second["version"], "-o", "json").json
        assert [(row["key"], row["value"]) for row in rows] == [("B1", "50"), ("B2", "20")]
        assert len(run("tables", "export", "accounts", "--at", second["version"]).rows) == 2

    def test_now_is_the_newest_version_that_no_open_transaction_can_change(
        self, run: Any, path: Path
    ) -> None:
        """A lowered version is named on standard error, with the reason, and read again it has the same answer."""
        outcome = run("tables", "get", "accounts", "B1", "--at", "now")
        newest = outcome.err.partition("read at version ")[2].split()[0]
        assert int(newest) >= int(run("tables", "get", "accounts", "B2", "-o", "name").out)
        assert (outcome.out, run("tables", "get", "accounts", "B1", "--at", newest).err) == ("100\n", "")
        assert "no later one has been issued" in outcome.err
        txn = begin(run)
        assert run("tables", "put", "accounts", "B3", "5").status == 0
        outcome = run("tables", "export", "accounts", "--at", "now")
        assert len(outcome.rows) == 2
        assert f"transaction {txn} can still write later ones" in outcome.err
        assert run("tables", "put", "accounts", "B4", "1", "--txn", txn).status == 0
        assert run("transactions", "commit", txn).status == 0
        version = outcome.err.partition("read at version ")[2].split()[0]
        assert len(run("tables", "scan", "accounts", "--at", version, "-o", "json").json) == 2
        with Store.open(path) as store, store.transaction() as reader:
            later = store.table("accounts").put(b"B5", b"1")
            outcome = run("tables", "scan", "accounts", "--at", str(later), "-o", "name")
            assert outcome.out == "B1\nB2\nB3\nB4\n"
            assert f"read at version {reader.timestamp - 1} (" in outcome.err
            assert "a transaction of a running process can still write" in outcome.err
        assert "B5" in run("tables", "scan", "accounts", "--at", "now", "-o", "name").out

    def test_beyond_the_window_nothing_is_promised(self, run: Any) -> None:
        """Exit 4, request-too-old."""
        outcome = run("tables", "get", "accounts", "B1", "--at", "2001-01-01", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "request-too-old")

    @pytest.mark.parametrize("moment", ["yesterday", "", "-5", "@@1", "99999999999999999999", "2024-13-01"])
    def test_what_is_no_moment_is_bad_input(self, run: Any, moment: str) -> None:
        """Exit 2, with what was expected."""
        outcome = run("tables", "get", "accounts", "B1", f"--at={moment}", "-o", "json")
        assert outcome.status == 2
        assert "--at" in outcome.error["message"]
        assert "version" in outcome.error["hint"]

    def test_it_is_outside_any_transaction(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """With --txn, TXNCTL_TXN or --check: exit 2, and the hint says how."""
        txn = begin(run)
        at = run("tables", "get", "accounts", "B1", "-o", "name").out.strip()
        assert run("tables", "get", "accounts", "B1", "--at", at, "--check", "full").status == 2
        assert run("tables", "get", "accounts", "B1", "--at", at, "--txn", txn).status == 2
        monkeypatch.setenv("TXNCTL_TXN", txn)
        outcome = run("tables", "get", "accounts", "B1", "--at", at)
        assert outcome.status == 2
        assert "env -u TXNCTL_TXN" in outcome.err


class TestRun:
    """`transactions run` over tables."""

    TRANSFER = """txnctl transactions run $OPTIONS -- sh -ec '
        from=$(txnctl tables get accounts B1)
        to=$(txnctl tables get accounts B2)
        eval "$BETWEEN"
        txnctl tables put accounts B1 $((from - AMOUNT))
        txnctl tables put accounts B2 $((to + AMOUNT))
        exit $STATUS
    '"""

    def transfer(self, shell: Any, amount: int, **variables: str) -> Any:
        """Run it."""
        given = {"OPTIONS": "", "BETWEEN": "", "STATUS": "0", **variables}
        return shell(self.TRANSFER, AMOUNT=str(amount), **given)

    def test_a_transfer_in_the_shell(self, run: Any, shell: Any) -> None:
        """Both accounts change, also below zero."""
        assert self.transfer(shell, 150).returncode == 0
        assert (value(run, "B1"), value(run, "B2")) == ("-50", "170")

    def test_a_transfer_that_fails_changes_nothing(self, run: Any, shell: Any) -> None:
        """The exit code is the script's."""
        assert self.transfer(shell, 50, STATUS="9").returncode == 9
        assert (value(run, "B1"), value(run, "B2")) == ("100", "20")
        assert run("tables", "intents", "-o", "json").json == []

    def test_who_loses_a_key_ends_with_4_and_may_try_again(self, run: Any, shell: Any) -> None:
        """Somebody writes an account in between: nothing of the transfer counts; with a higher priority it wins."""
        between = "env -u TXNCTL_TXN txnctl tables put accounts B1 40 || :"
        lost = self.transfer(shell, 50, BETWEEN=between)
        assert lost.returncode == 4, lost
        assert "B1" in lost.stderr
        assert (value(run, "B1"), value(run, "B2")) == ("40", "20")
        late = "txnctl tables put accounts B1 0; env -u TXNCTL_TXN txnctl tables put accounts B1 5 || :"
        won = self.transfer(shell, 10, OPTIONS="--priority high", BETWEEN=late)
        assert won.returncode == 0, won
        assert (value(run, "B1"), value(run, "B2")) == ("30", "30")

    def test_a_read_committed_run_reads_and_cannot_write(self, run: Any, shell: Any) -> None:
        """Its transaction ends with it."""
        script = (
            "txnctl transactions run --isolation read-committed -- sh -ec 'txnctl tables get accounts B1{}'"
        )
        done = shell(script.format(""))
        assert (done.returncode, done.stdout) == (0, "100\n")
        refused = shell(script.format("; txnctl tables rm accounts B1"))
        assert refused.returncode == 4
        assert "only reads tables" in refused.stderr
        assert run("transactions", "list", "-o", "json").json == []
        ended = run("transactions", "list", "--ended", "-n", "2", "-o", "json").json
        assert [row["state"] for row in ended] == ["ABORTED", "COMMITTED"]

    SETTLE = """txnctl transactions run -- sh -ec '
        line=$(txnctl consume requests -s E --from earliest -n 1 -o value)
        [ -n "$line" ]
        balance=$(txnctl tables get accounts B1)
        txnctl tables put accounts B1 $((balance + line))
        txnctl produce settled -q -m "B1 $line"
        exit $STATUS
    '"""

    def test_one_transaction_over_a_topic_an_acknowledgement_and_a_table(self, run: Any, shell: Any) -> None:
        """Read a request, put the account, tell of it, acknowledge: all of it or nothing."""
        run("produce", "requests", "-m", "-30", "-m", "5")
        assert shell(self.SETTLE, STATUS="7").returncode == 7
        assert value(run, "B1") == "100"
        assert run("consume", "settled", "-o", "value").out == ""
        for balance in ("70", "75"):
            assert shell(self.SETTLE, STATUS="0").returncode == 0
            assert value(run, "B1") == balance
        assert run("consume", "settled", "-o", "value").out == "B1 -30\nB1 5\n"
        assert shell(self.SETTLE, STATUS="0").returncode == 1  # nothing is left
        parts = [
            part["kind"]
            for part in run("transactions", "list", "--ended", "-o", "json").json
            for part in run("transactions", "show", part["txnId"], "-o", "json").json["parts"]
            if part["messages" if part["kind"] != "table" else "keys"]
        ]
        assert sorted(set(parts)) == ["subscription", "table", "topic"]

    def test_once_it_has_used_a_table_it_consumes_nothing_newer(self, run: Any) -> None:
        """Nothing is handed out, waiting or not, and nothing is acknowledged; a new transaction gets it."""
        run("produce", "requests", "-m", "old")
        txn = begin(run)
        run("produce", "requests", "-m", "new")
        run("tables", "get", "accounts", "B1", "--txn", txn)
        consume = ("consume", "requests", "-s", "E", "--from", "earliest", "-o", "value")
        said = f"the next message of E came after transaction {txn} began"
        first = run(*consume, "--txn", txn)
        assert (first.status, first.out, first.err.count(said)) == (0, "old\n", 1)
        waited = run(*consume, "--txn", txn, "-n", "1", "--timeout", "1300ms")
        assert (waited.status, waited.out, waited.err.count(said)) == (7, "", 1)
        assert run("transactions", "commit", txn).status == 0
        last = run(*consume, "--txn", begin(run))
        assert last.out == "new\n"
        assert "came after" not in last.err

    def test_a_killed_settlement_leaves_nothing(self, run: Any, path: Path, shell: Any) -> None:
        """Killed with everything done but the commit: the request comes again, no balance has changed."""
        run("produce", "requests", "-m", "-30")
        script = self.SETTLE.replace("exit $STATUS", "kill -9 $PPID; exec sleep 60")
        assert shell(script).returncode != 0
        assert value(run, "B1") == "100"
        assert run("transactions", "reap", "-o", "name").out.count("0:") <= 1
        assert shell(self.SETTLE, STATUS="0").returncode == 0
        assert value(run, "B1") == "70"
        with Store.open(path, read_only=True) as store:
            assert [message.value for message in store.reader("settled", start=EARLIEST)] == [b"B1 -30"]


@pytest.mark.usefixtures("path")
class TestWhoIsAborted:
    """A command that wants a key which an open transaction holds says whom it aborted for it."""

    @pytest.fixture
    def bob(self, run: Any) -> str:
        """A transaction that holds B2, and has a message and two acknowledgements to lose."""
        run("subscriptions", "create", "requests", "settle")
        for value in ("one", "two"):
            run("produce", "requests", "-m", value)
        txn = begin(run, "--label", "who=bob")
        run("consume", "requests", "-s", "settle", "--txn", txn)
        run("produce", "settled", "-m", "half", "--txn", txn)
        assert run("tables", "put", "accounts", "B2", "15", "--txn", txn).status == 0
        return txn

    LOST = "(who=bob), which held B2 of accounts: 1 message discarded, 2 acknowledgements given back\n"

    @pytest.mark.parametrize(
        "words", [("put", "accounts", "B2", "7"), ("rm", "accounts", "B2")], ids=["put", "rm"]
    )
    @pytest.mark.parametrize("inside", [False, True], ids=["plain", "in a transaction"])
    def test_a_write_names_it(self, run: Any, bob: str, words: tuple[str, ...], inside: bool) -> None:
        """On standard error with what it loses, and in JSON; the next write of the same transaction is silent."""
        txn = ("--txn", begin(run)) if inside else ()
        first = run("tables", *words, *txn, "-o", "json")
        again = run("tables", "put", "accounts", "B2", "8", *txn, "-o", "json")
        assert (first.status, again.status) == (0, 0)
        assert first.err == f"txnctl: aborted {bob} {self.LOST}"
        assert first.json["transactionsAborted"] == [bob]
        assert (again.err, again.json["transactionsAborted"]) == ("", [])

    def test_an_import_names_it(self, run: Any, bob: str, tmp_path: Path) -> None:
        """As it is one transaction, once."""
        rows = tmp_path / "rows"
        rows.write_text('{"key":"B1","value":"1"}\n{"key":"B2","value":"2"}\n')
        outcome = run("tables", "import", "accounts", str(rows), "-o", "json")
        assert f"txnctl: aborted {bob} {self.LOST}" in outcome.err
        assert outcome.json["transactionsAborted"] == [bob]

    def test_a_read_in_a_transaction_names_it(self, run: Any, bob: str) -> None:
        """A serializable read pushes too; one outside any transaction disturbs nobody."""
        younger = begin(run)
        assert run("tables", "get", "accounts", "B2").err == ""
        outcome = run("tables", "get", "accounts", "B2", "--txn", younger)
        assert (outcome.out, outcome.err) == ("20\n", f"txnctl: aborted {bob} {self.LOST}")

    def test_who_loses_is_told_who_holds_the_key(self, run: Any) -> None:
        """With label, priority and idle time, and the command that tells more; show and history know who wanted it."""
        holder = begin(run, "--label", "who=bob", "--priority", "high")
        run("tables", "put", "accounts", "B2", "15", "--txn", holder)
        loser = begin(run)
        error = run("tables", "put", "accounts", "B2", "7", "--txn", loser, "-o", "json").error
        assert error["code"] == "lost-conflict"
        told = f"transaction {loser} is aborted: key B2 of table accounts is held by transaction {holder} (who=bob, "
        assert error["message"].startswith(told)
        assert ", priority high, idle for 0 s)" in error["message"]
        assert error["hint"].startswith(f"`txnctl transactions explain {holder}` says whether to wait")
        (row,) = run("tables", "history", "-o", "json").json
        assert (row["kind"], row["loser"], row["winner"]) == ("held", loser, holder)
        out = run("transactions", "show", loser).out
        assert "over key B2 of table accounts: the other held it, and this one wanted it" in out
        winner = begin(run, "--priority", "highest")
        run("tables", "put", "accounts", "B2", "9", "--txn", winner)
        assert run("tables", "history", "-n", "1", "-o", "json").json[0]["kind"] == "push"
        out = run("transactions", "show", holder).out
        assert "this one held it, and was in the way of the other" in out

    def test_a_refusal_over_forgotten_reads_names_no_transaction(self, run: Any, path: Path) -> None:
        """The key may have been read: so say the error, show and history."""
        old, reader = begin(run), begin(run)
        run("tables", "get", "accounts", "B1", "--txn", reader)
        (path / "reads.cache").unlink()
        error = run("tables", "put", "accounts", "B2", "7", "--txn", old, "-o", "json").error
        assert error["message"] == (
            f"key B2 of table accounts may have been read by a later transaction, which began after transaction {old}: "
            "it is aborted"
        )
        out = run("transactions", "show", old).out
        assert (
            "a younger transaction may have read key B2 of table accounts: reads that long ago are forgotten"
            in out
        )
        (row,) = run("tables", "history", "-o", "json").json
        assert (row["kind"], row["winner"], row["winnerVersion"]) == ("read", None, None)

    @pytest.mark.parametrize("words", [("put", "accounts", "B2", "7"), ("rm", "accounts", "B2")])
    def test_a_plain_write_may_have_a_priority(self, run: Any, words: tuple[str, ...]) -> None:
        """One as high as that of the older holder wins; one in a transaction has that one's."""
        holder = begin(run, "--priority", "high")
        run("tables", "put", "accounts", "B2", "15", "--txn", holder)
        assert run("tables", *words).status == 4
        assert run("tables", *words, "--priority", "high", "--txn", holder).status == 2
        assert run("tables", *words, "--priority", "high").status == 0
        assert run("transactions", "show", holder, "-o", "json").json["state"] == "ABORTED"

    @pytest.mark.parametrize(
        ("priority", "outcome", "status"),
        [
            ("low", "aborts it, a plain one too, unless its priority is lower.", 0),
            ("medium", "aborts it, a plain one too, unless its priority is lower.", 0),
            ("high", "is refused, a plain one too, unless its priority is as high.", 4),
        ],
    )
    def test_explain_says_what_the_next_write_does(
        self, run: Any, priority: str, outcome: str, status: int
    ) -> None:
        """Of a transaction that holds a key, before somebody finds out."""
        txn = begin(run, "--priority", priority)
        assert "next write of a key" not in run("transactions", "explain", txn).out
        run("tables", "put", "accounts", "B1", "1", "--txn", txn)
        assert (
            f"  The next write of a key that it holds {outcome}\n" in run("transactions", "explain", txn).out
        )
        assert run("tables", "put", "accounts", "B1", "2").status == status
