"""`txnctl store`: creating a store, looking at it, checking it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import Store, faults
from storage.limits import FINALIZE_INLINE_MAX
from storage.verify.run import FULL, QUICK
from tests.row_json import row_json
from txnctl.commands.store import backup, compact, config, gc, info, locks, readers, restore, space, verify
from txnctl.commands.store.process_table import _shortened
from txnctl.commands.store.verification import Verification
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


def interrupt() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


@pytest.fixture
def path(path: Path) -> Path:
    """A store with ten messages, which every command of the test is told of, verified when the test is over."""
    with Store.open(path) as store:
        store.create_topic("orders")
        store.create_producer("orders", connected=False).send_batch([b"x"] * 10)
    return path


class TestInit:
    """`store init`."""

    def test_it_creates_a_private_store(self, run: Any, tmp_path: Path) -> None:
        """0600 in a 0700 directory whatever the umask, and the directories above it."""
        at = tmp_path / "deep" / "er" / "bank.store"
        before = os.umask(0)
        try:
            outcome = run("store", "init", str(at))
        finally:
            os.umask(before)
        assert outcome.out == f"Created store {at}.\n"
        assert stat.S_IMODE(at.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in at.iterdir()} == {0o600}
        with Store.open(at) as store:
            assert row_json(store.maintenance.verify_store()) == []

    def test_option_and_variable_name_it_too(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """PATH counts before TXNCTL_STORE; with --store beside it it is ambiguous."""
        one, two, three = (str(tmp_path / name) for name in ("one", "two", "three"))
        assert run("store", "init", "--store", one, "-o", "name").out == f"{one}\n"
        monkeypatch.setenv("TXNCTL_STORE", two)
        assert run("store", "init", "-o", "json").json["path"] == two
        assert run("store", "init", three, "-o", "json").json["path"] == three
        outcome = run("store", "init", str(tmp_path / "four"), "--store", one)
        assert outcome.status == 2
        assert not (tmp_path / "four").exists()
        assert run("store", "init", "").status == 2

    def test_what_is_there_is_left_as_it_is(self, run: Any, path: Path) -> None:
        """Another store above all."""
        before = (path / "data.mdb").read_bytes()
        outcome = run("store", "init", str(path), "-o", "json")
        assert outcome.status == 4
        assert outcome.error["code"] == "already-exists"
        assert (path / "data.mdb").read_bytes() == before

    def test_an_empty_directory_may_become_one(self, run: Any, tmp_path: Path) -> None:
        """`mkdir` before `init` is no mistake."""
        at = tmp_path / "empty"
        at.mkdir()
        assert run("store", "init", str(at)).status == 0
        assert run("topics", "list", "--store", str(at)).status == 0

    def test_two_at_once_make_one_store(self, start: Any, tmp_path: Path) -> None:
        """One is told so, and nothing is left of what it had begun."""
        at = tmp_path / "twice" / "bank.store"
        running = [start("store", "init", str(at)) for _ in range(2)]
        for process in running:
            process.communicate(timeout=60)
        assert sorted(process.returncode for process in running) == [0, 4]
        assert [each.name for each in at.parent.iterdir()] == ["bank.store"]


class TestInfo:
    """`store info`, `space`."""

    def test_info_says_what_it_is(self, run: Any, path: Path) -> None:
        """All fields are declared."""
        row = run("store", "info", "-o", "json").json
        assert not undeclared(row, info.INFO)
        assert (row["path"], row["format"], row["topics"]) == (str(path), 1, 1)
        assert row["dataBytes"] == (path / "data.mdb").stat().st_size
        assert ["path", str(path)] in [line.split() for line in run("store", "info").out.splitlines()]

    def test_space_adds_up_to_no_more_than_the_file(self, run: Any, path: Path) -> None:
        """The largest first."""
        rows = run("store", "space", "-o", "json").json
        assert not undeclared(rows[0], space.SPACE)
        sizes = [row["bytes"] for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert 0 < sum(sizes) <= (path / "data.mdb").stat().st_size

    def test_looking_changes_nothing(self, run: Any, path: Path) -> None:
        """Not a byte of the data file or of our own files."""
        before = {name: (path / name).read_bytes() for name in ("data.mdb", "store.lock")}
        for words in ("info", "space", "locks", "readers", "verify"):
            assert run("store", words).status == 0
        assert {name: (path / name).read_bytes() for name in before} == before


WAITING = """
import sys, time
from storage import Store, faults
store = Store.open(sys.argv[1])
consumer = store.subscribe("orders", "billing")
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def other(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the store open and a consumer attached."""
    process = subprocess.Popen([sys.executable, "-c", WAITING, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.communicate()


class TestHolders:
    """`store locks`, `readers`."""

    def test_nobody_there_is_success(self, run: Any) -> None:
        """An empty list, and a note for people."""
        assert run("store", "locks", "-o", "json").json == []
        outcome = run("store", "locks")
        assert outcome.out == ""
        assert "nobody" in outcome.err

    def test_who_has_it_open_is_named(self, run: Any, other: subprocess.Popen[bytes]) -> None:
        """With pid and state, which follows SIGSTOP."""
        rows = run("store", "locks", "-o", "json").json
        assert {row["pid"] for row in rows} == {other.pid}
        assert not undeclared(rows[0], locks.LOCKS)
        assert sorted((row["lock"].split()[0], row["state"]) for row in rows) == [
            ("lease", "alive"),
            ("store", "open"),
        ]
        os.kill(other.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, other.pid, os.WSTOPPED)
        rows = run("store", "locks", "-o", "json").json
        assert {row["state"] for row in rows} == {"stopped"}
        assert str(other.pid) in run("store", "locks").out

    def test_the_dead_are_shown_as_dead(self, run: Any, other: subprocess.Popen[bytes]) -> None:
        """Until the next writer frees what they held."""
        other.kill()
        other.wait()
        assert [
            (row["lock"].split()[0], row["state"]) for row in run("store", "locks", "-o", "json").json
        ] == [("lease", "dead")]

    def test_readers_are_named(self, run: Any, path: Path) -> None:
        """With how far behind they are; an empty table is success."""
        assert run("store", "readers").status == 0
        with Store.open(path) as store:
            with store.connection.view():
                store.create_topic("another")
                rows = run("store", "readers", "-o", "json").json
            mine = [row for row in rows if row["pid"] == os.getpid() and row["state"] == "reading"]
        assert not undeclared(mine[0], readers.READERS)
        assert max(row["behind"] for row in mine) == 1


class TestVerify:
    """`store verify`; what it finds in damaged files is in test_bad_input."""

    @pytest.mark.parametrize("mode", ["full", "quick"])
    def test_a_sound_store_is_ok(self, run: Any, path: Path, mode: str) -> None:
        """One line for people."""
        row = run("store", "verify", f"--{mode}", "-o", "json").json
        assert not undeclared(row, verify.VERIFIED)
        assert (row["ok"], row["mode"], row["problems"]) == (True, mode, [])
        assert row["invariants"] == list(FULL if mode == "full" else QUICK)
        out = run("store", "verify", f"--{mode}").out
        assert out.startswith(f"ok  {path}: ")
        assert out.endswith(f"; rules {', '.join(map(str, row['invariants']))}\n")
        assert len(out.splitlines()) == 1

    def test_reads_of_tables_are_checked_too(self, run: Any, path: Path) -> None:
        """Rule 13, where there is a table; the file is the same after it."""
        with Store.open(path) as store:
            store.create_table("accounts")
            store.table("accounts").put(b"B1", b"100")
        before = (path / "data.mdb").read_bytes()
        row = run("store", "verify", "--full", "-o", "json").json
        assert (row["ok"], 12 in row["invariants"], 13 in row["invariants"]) == (True, True, True)
        assert (path / "data.mdb").read_bytes() == before

    def test_the_child_needs_no_help_of_its_directory(self, run: Any, path: Path, monkeypatch: Any) -> None:
        """It finds its own modules wherever it runs, and takes none from there."""
        elsewhere = path.parent / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "json.py").write_text("raise SystemExit('not this one')")
        monkeypatch.chdir(elsewhere)
        assert run("store", "verify").status == 0

    def test_a_relative_path_is_the_callers(self, run: Any, path: Path, monkeypatch: Any) -> None:
        """As everywhere."""
        monkeypatch.chdir(path.parent)
        assert run("store", "verify", "--store", "bank.store").status == 0

    def test_a_child_that_is_killed_is_a_finding(self, path: Path) -> None:
        """With the signal in words."""
        with Verification(str(path), full=True) as running:
            running._child.send_signal(signal.SIGSTOP)
            running._child.kill()
            list(running.steps())
        # What it told before it died may have been everything but its end.
        assert all("SIGKILL" in each["message"] for each in running.problems)
        with Verification(str(path), full=True) as running:
            running._child.wait()
            running._child.returncode = -signal.SIGBUS
            list(running.steps())
        assert [each["object"] for each in running.problems] == ["data.mdb"]
        assert "SIGBUS" in running.problems[0]["message"]

    def test_a_wrong_counter_is_found_and_shown(self, run: Any, tmp_path: Path) -> None:
        """Exit 6 after a report that names topic and rule; standard error has the error."""
        at = tmp_path / "wrong.store"
        Store.create(at)
        with Store.open(at) as store:
            store.create_topic("orders")
            store.create_producer("orders").send(b"x")
            _miscount(store)
        outcome = run("store", "verify", "--store", str(at), "-o", "json")
        assert outcome.status == 6
        assert not outcome.json["ok"]
        assert {"invariant", "object", "message"} == set(outcome.json["problems"][0])
        assert outcome.error["code"] == "corrupt-store"
        table = run("store", "verify", "--store", str(at))
        assert table.status == 6
        assert "orders" in table.out
        assert "problem" in table.err


def _miscount(store: Store) -> None:
    """Make the head of the only topic say one message more than there is."""
    from storage.disk.view import WriteBatch
    from storage.topic import state

    def change(batch: WriteBatch) -> None:
        head = state.load(batch, 1)
        head.messages += 1
        state.save(batch, 1, head)

    store.connection.write(change)


class TestBackup:
    """`store backup`, `restore`."""

    def test_a_backup_is_a_store_of_its_own(self, run: Any, path: Path, tmp_path: Path) -> None:
        """Sound, private, with all messages; the store itself is not touched."""
        before = (path / "data.mdb").read_bytes()
        at = tmp_path / "deep" / "backup"
        row = run("store", "backup", str(at), "-o", "json").json
        assert not undeclared(row, backup.BACKED_UP)
        assert row == {"path": str(at), "bytes": (at / "data.mdb").stat().st_size}
        assert (path / "data.mdb").read_bytes() == before
        assert stat.S_IMODE(at.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in at.iterdir()} == {0o600}
        with Store.open(at) as store:
            assert row_json(store.maintenance.verify_store()) == []
            assert len(list(store.reader("orders"))) == 10

    def test_what_is_there_is_left_as_it_is(self, run: Any, path: Path, tmp_path: Path) -> None:
        """For both: neither a backup nor a restored store overwrites anything."""
        taken = tmp_path / "taken"
        taken.write_text("mine")
        assert run("store", "backup", str(taken)).status == 4
        assert run("store", "restore", str(path), "--to", str(taken)).status == 4
        assert run("store", "restore", str(path)).status == 4
        assert taken.read_text() == "mine"

    def test_a_restored_store_is_another_incarnation(self, run: Any, path: Path, tmp_path: Path) -> None:
        """What was open is aborted; the epoch of each topic grows."""
        with Store.open(path) as store:
            txn = store.begin_transaction()
            store.create_producer("orders").send(b"open", txn=txn)
        backup, back = tmp_path / "backup", tmp_path / "back"
        assert run("store", "backup", str(backup)).status == 0
        dry = run("store", "restore", str(backup), "--to", str(back), "--dry-run", "-o", "json").json
        assert not back.exists()
        row = run("store", "restore", str(backup), "--to", str(back), "--reason", "test", "-o", "json").json
        assert (dry.pop("dryRun"), row.pop("dryRun")) == (True, False)
        assert dry == row
        assert not undeclared(row, restore.RESTORED)
        assert (row["path"], row["incarnation"], row["transactionsAborted"]) == (str(back), 2, 1)
        with Store.open(back) as store:
            assert row_json(store.maintenance.verify_store()) == []
            assert row_json(store.reports.show_transaction(txn))["reason"] == "incarnation"
            assert row_json(store.reports.list_audit_records())[0]["reason"] == "test"
            assert len(list(store.reader("orders"))) == 10
        with Store.open(path) as store:
            assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN"

    def test_a_missing_or_foreign_source_is_refused(self, run: Any, tmp_path: Path) -> None:
        """Exit 6, and nothing is created."""
        (tmp_path / "photos").mkdir(mode=0o700)
        for name in ("nowhere", "photos"):
            assert run("store", "restore", str(tmp_path / name), "--to", str(tmp_path / "new")).status == 6
        assert sorted(each.name for each in tmp_path.iterdir()) == ["bank.store", "photos"]


class TestUpkeep:
    """`store compact`, `gc`, `config`."""

    def test_compacting_makes_the_file_smaller_and_loses_nothing(self, run: Any, path: Path) -> None:
        """What a deleted topic left free goes back to the disk."""
        with Store.open(path) as store:
            store.create_topic("large")
            with store.create_producer("large") as producer:
                producer.send_batch([b"x" * 100_000] * 20)
            store.admin.topics.delete_topic("large")
        row = run("store", "compact", "-o", "json").json
        assert not undeclared(row, compact.COMPACTED)
        assert row["bytesAfter"] < row["bytesBefore"] - 1_000_000
        assert row["bytesAfter"] == (path / "data.mdb").stat().st_size
        with Store.open(path) as store:
            assert len(list(store.reader("orders"))) == 10

    def test_compacting_needs_the_store_alone(
        self, run: Any, path: Path, other: subprocess.Popen[bytes]
    ) -> None:
        """Exit 5 names who has it."""
        before = (path / "data.mdb").stat().st_ino
        outcome = run("store", "compact", "-o", "json")
        assert outcome.status == 5
        assert outcome.error["code"] == "store-in-use"
        assert str(other.pid) in outcome.error["message"]
        assert (path / "data.mdb").stat().st_ino == before

    def test_a_dry_run_of_compacting_tells_the_size(self, run: Any, path: Path) -> None:
        """The same as the real one gets, which leaves a record with its reason; the file stays as it was."""
        with Store.open(path) as store:
            store.create_topic("large")
            store.create_producer("large", connected=False).send_batch([b"x" * 100_000] * 20)
            store.admin.topics.delete_topic("large")
        before = (path / "data.mdb").read_bytes()
        dry = run("store", "compact", "--dry-run", "-o", "json").json
        assert not undeclared(dry, compact.COMPACTED)
        assert run("store", "compact", "--dry-run").out.startswith(
            "DRY RUN: nothing was changed.\n\nWould compact "
        )
        assert (path / "data.mdb").read_bytes() == before
        assert sorted(each.name for each in path.iterdir()) == ["data.mdb", "lock.mdb", "store.lock"]
        row = run("store", "compact", "--reason", "full disk", "-o", "json").json
        change = run(
            "audit", "show", run("audit", "list", "-o", "name").out.splitlines()[0], "-o", "json"
        ).json
        assert (change["action"], change["reason"]) == ("store compact", "full disk")
        assert dry == row | {"dryRun": True}
        assert change["effects"]["bytesCopied"] <= row["bytesAfter"] < row["bytesBefore"]

    def test_a_dry_run_of_gc_says_what_is_left(self, run: Any, path: Path) -> None:
        """Of a topic whose deletion was killed; the real one removes it and leaves a record."""
        with Store.open(path) as store:
            store.create_topic("large")
            store.create_producer("large", connected=False).send_batch([b"x"] * 5)
            faults.arm("topic.between_purge_steps", interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.admin.topics.delete_topic("large")
            faults.disarm()
        before = (path / "data.mdb").read_bytes()
        row = run("store", "gc", "--dry-run", "-o", "json").json
        assert not undeclared(row, gc.COLLECTED)
        assert (row["deletedTopics"], row["purgeSteps"], row["dryRun"]) == (1, None, True)
        assert "remove what 1 deleted topic left.\n" in run("store", "gc", "--dry-run").out
        assert (path / "data.mdb").read_bytes() == before
        row = run("store", "gc", "--reason", "killed", "-o", "json").json
        assert (row["deletedTopics"], row["dryRun"]) == (1, False) and row["purgeSteps"] > 0
        assert run("store", "gc", "-o", "json").json["deletedTopics"] == 0
        changes = [(each["action"], each["reason"]) for each in run("audit", "list", "-o", "json").json]
        assert changes == [("store gc", "killed"), ("topics delete", None)]

    def test_a_dry_run_of_gc_has_the_numbers_of_the_real_one(self, run: Any, path: Path) -> None:
        """Of tables too: what was deleted, and write intents that wait; in sentences as in JSON."""
        with Store.open(path) as store:
            for name in ("kept", "gone"):
                store.create_table(name)
                store.table(name).put(b"k", b"v")
            txn = store.begin_transaction()
            store.table("kept").import_rows(
                ((b"%d" % n, b"v") for n in range(FINALIZE_INLINE_MAX + 1)), txn=txn
            )
            store.commit_transaction(txn)
            faults.arm("table.between_purge_steps", interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.admin.tables.delete_table("gone")
            faults.disarm()
        dry = run("store", "gc", "--dry-run", "-o", "json").json
        text = run("store", "gc", "--dry-run").out
        done = run("store", "gc", "-o", "json").json
        assert (dry["intentsFinalized"], dry["deletedTables"], dry["versionsRemoved"]) == (65, 1, 0)
        moment = ("tableWindowStart", "purgeSteps", "dryRun")
        assert {k: v for k, v in dry.items() if k not in moment} == {
            k: v for k, v in done.items() if k not in moment
        }
        assert "remove what 0 deleted topics and 1 deleted table left" in text
        assert "Would finalise 65 write intents; remove 0 old versions and 0 deleted keys" in text
        assert run("store", "gc", "--dry-run", "-o", "json").json["deletedTables"] == 0

    @pytest.mark.parametrize("words", [("store", "gc"), ("store", "compact")])
    def test_a_reason_that_is_too_long_is_refused_first(
        self, run: Any, path: Path, words: tuple[str, ...]
    ) -> None:
        """Exit 2, nothing done."""
        before = (path / "data.mdb").read_bytes()
        assert run(*words, "--reason", "x" * 4097).status == 2
        assert (path / "data.mdb").read_bytes() == before

    def test_gc_may_always_run(self, run: Any) -> None:
        """It says what it freed."""
        row = run("store", "gc", "-o", "json").json
        assert not undeclared(row, gc.COLLECTED)
        assert row["purgeSteps"] == 0
        assert run("store", "gc").out.startswith("Freed ")

    def test_the_reap_policy_is_a_setting(self, run: Any, path: Path) -> None:
        """Shown, tried in a dry run, set with a reason."""
        rows = run("store", "config", "-o", "json").json
        assert [(row["name"], row["value"]) for row in rows] == [
            ("reap-policy", "all"),
            ("table-retention", "1h"),
        ]
        assert not undeclared(rows[0], config.SETTINGS)
        before = (path / "data.mdb").read_bytes()
        dry = run("store", "config", "reap-policy", "manual", "--dry-run", "-o", "json").json
        assert (dry["before"], dry["value"], dry["dryRun"]) == ("all", "manual", True)
        assert run("store", "config", "reap-policy").out == "all\n"
        assert (path / "data.mdb").read_bytes() == before
        assert run("store", "config", "reap-policy", "manual", "--reason", "quiet").status == 0
        assert run("store", "config", "reap-policy").out == "manual\n"
        with Store.open(path) as store:
            assert row_json(store.reports.list_audit_records())[0]["reason"] == "quiet"

    def test_the_table_retention_is_a_setting(self, run: Any, path: Path) -> None:
        """A duration, shown as it can be typed; tried in a dry run, set with a reason, refused out of its bounds."""
        before = (path / "data.mdb").read_bytes()
        dry = run("store", "config", "table-retention", "5400s", "--dry-run", "-o", "json").json
        assert (dry["before"], dry["value"], dry["dryRun"]) == ("1h", "90m", True)
        for value in ("999ms", "4000d", "forever", "-1h", ""):
            assert run("store", "config", "table-retention", "--", value).status == 2
        assert (path / "data.mdb").read_bytes() == before
        for value in ("1s", "90m", "1d", "1500ms"):
            assert run("store", "config", "table-retention", value, "--reason", "audit").status == 0
            assert run("store", "config", "table-retention").out == f"{value}\n"
        with Store.open(path) as store:
            assert (
                row_json(store.reports.list_audit_records())[0]["action"],
                row_json(store.reports.list_audit_records())[0]["reason"],
            ) == ("store config", "audit")

    @pytest.mark.parametrize("words", [("nothing",), ("nothing", "1"), ("reap-policy", "sometimes")])
    def test_an_unknown_setting_is_bad_input(self, run: Any, words: tuple[str, ...]) -> None:
        """And the hint says what there is."""
        outcome = run("store", "config", *words, "-o", "json")
        assert outcome.status == 2
        assert "reap-policy" in outcome.error["hint"] or "manual" in outcome.error["hint"]


@pytest.mark.parametrize(
    ("holder", "shown"),
    [
        (None, None),
        ("process 7 (python load.py)", "process 7 (python load.py)"),
        (
            "process 48211 (python /srv/loader/load.py --from 2024-05-01 --to 2024-06-01)",
            "process 48211 (python /srv/loader/load.py --from ...)",
        ),
    ],
)
def test_a_long_command_line_is_cut_at_a_word(holder: str | None, shown: str | None) -> None:
    """The table has what fits, and says that there is more."""
    assert _shortened(holder) == shown
