"""`txnctl store upgrade`, and every command on the store of the first release before and after."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.disk.schema import FORMAT_NUMBER
from tests.format.small_store import unpacked
from tests.txnctl.test_bad_input import every_command
from txnctl.commands.store import restore, upgrade
from txnctl.output.field import undeclared


@pytest.fixture
def path(told: Path) -> Path:
    """The small store of format 1, named to every command of the test."""
    return unpacked(1, told)


def content(path: Path) -> dict[str, bytes]:
    """The files that hold the store."""
    return {name: (path / name).read_bytes() for name in ("data.mdb", "store.lock")}


READING = (
    "topics list", "topics show orders", "topics stats orders", "topics stats-internal orders",
    "topics positions orders", "topics peek orders", "topics log orders", "topics last-message-id orders",
    "topics config orders", "subscriptions list", "subscriptions show orders D", "subscriptions stats orders D",
    "subscriptions lag orders D", "subscriptions pending orders D", "producers list", "producers show accounts",
    "transactions list", "transactions show 0:3", "transactions blocked", "transactions explain 0:9",
    "transactions slow", "transactions orphans", "transactions history", "transactions timeline orders",
    "tables list", "tables show accounts", "tables stats accounts", "tables get accounts B1",
    "tables scan accounts", "tables versions accounts B1", "tables intents accounts", "tables history accounts",
    "tables export accounts", "store info", "store space", "store space --freeable", "store locks",
    "store readers", "store config", "store verify --full", "status", "doctor", "report --html -", "audit list",
    "audit show 1", "consume orders", "consume orders --isolation-level read-uncommitted",
)  # fmt: skip
WRITING = (
    "topics create new", "topics config orders --retention-time 1h", "topics trim orders", "topics delete orders",
    "topics truncate orders", "subscriptions create orders new", "subscriptions seek orders E earliest",
    "subscriptions skip orders E 1", "subscriptions clear-backlog orders E", "subscriptions delete orders E",
    "subscriptions update orders E --subscription-type shared", "produce orders -m x", "produce new -m x --create",
    "produce orders -m x --atomic", "produce orders -m x --txn 0:3", "consume orders -s E", "consume orders -s new",
    "transactions begin", "transactions commit 0:3", "transactions abort 0:3 --force", "transactions reap",
    "transactions run -- true", "tables create new", "tables put accounts B1 1", "tables rm accounts B1",
    "tables get accounts B1 --txn 0:3", "tables delete accounts", "producers fence accounts",
    "producers open orders", "producers lead orders -- true", "store gc", "store compact",
    "store config reap-policy manual", "store config reserve 2M",
)  # fmt: skip


@pytest.mark.parametrize("line", READING)
def test_a_store_of_format_1_is_read(run: Any, path: Path, line: str) -> None:
    """Without a change of a byte, and without a file that was not there."""
    before = content(path)
    outcome = run(*line.split())
    assert outcome.status == 0, outcome
    assert content(path) == before
    assert {file.name for file in path.iterdir()} == set(before)


@pytest.mark.parametrize("line", WRITING)
@pytest.mark.parametrize("is_dry", [False, True])
def test_a_change_of_a_store_of_format_1_is_refused(run: Any, path: Path, line: str, is_dry: bool) -> None:
    """By one error that names the upgrade, before anything is changed."""
    before = content(path)["data.mdb"]
    words = line.split()
    if is_dry and run(words[0], words[1], "--help").out.find("--dry-run") < 0:
        return
    if not line.startswith(("store", "consume", "produce ", "tables get")) and "--" not in words:
        words.append("--yes")
    outcome = run(*words, *(["--dry-run"] if is_dry and "--" not in words else []))
    assert outcome.status == 6, outcome
    assert f"{path} has format 1, which this release only reads; nothing was changed" in outcome.err
    assert "txnctl store upgrade" in outcome.err
    assert content(path)["data.mdb"] == before
    assert not (path / "reads.cache").exists()


def test_no_command_changes_a_store_of_format_1(
    run: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the tree, with something in the place of what it needs."""
    monkeypatch.chdir(tmp_path)
    before = content(path)["data.mdb"]
    for line in every_command(path):
        if line[0] != "pipeline" and line[:2] not in (["store", "upgrade"], ["transactions", "wait"]):
            outcome = run(*line)
            assert outcome.status != 1, (line, outcome)
            assert content(path)["data.mdb"] == before, line


def test_the_doctor_names_the_upgrade(run: Any, path: Path) -> None:
    """As a warning: work that writes waits for the upgrade."""
    (finding,) = (row for row in run("doctor", "-o", "json").json["findings"] if row["code"] == "old-format")
    assert (finding["severity"], finding["command"]) == ("warning", "txnctl store upgrade")
    run("store", "upgrade")
    assert "old-format" not in run("doctor", "-o", "json").out


def test_the_upgrade_is_shown_made_and_audited(run: Any, path: Path) -> None:
    """The dry run changes nothing; a second upgrade finds nothing to do; `store info` has the number."""
    before = content(path)["data.mdb"]
    dry = run("store", "upgrade", "--dry-run", "-o", "json").json
    assert content(path)["data.mdb"] == before
    assert "Would upgrade" in run("store", "upgrade", "--dry-run").out
    assert run("store", "info", "-o", "json").json["format"] == 1
    row = run("store", "upgrade", "--reason", "new release", "-o", "json").json
    assert not undeclared(row, upgrade.UPGRADED)
    assert row == {"path": str(path), "formatBefore": 1, "format": FORMAT_NUMBER, "dryRun": False}
    assert dry == row | {"dryRun": True}
    assert run("store", "info", "-o", "json").json["format"] == FORMAT_NUMBER
    after = content(path)["data.mdb"]
    assert "nothing was to be done" in run("store", "upgrade").out
    assert content(path)["data.mdb"] == after
    change = run("audit", "list", "-o", "json").json[0]
    assert (change["action"], change["reason"]) == ("store upgrade", "new release")
    assert change["effects"] == {"formatBefore": 1, "format": FORMAT_NUMBER}
    assert run("store", "verify", "--full").status == 0


@pytest.mark.parametrize(
    "line",
    [line for line in READING if line.startswith(("topics p", "topics l", "subscr", "tables", "cons"))],
)
def test_reports_of_an_upgraded_store_are_the_same(run: Any, path: Path, line: str) -> None:
    """But for the time of the report."""

    def told() -> str:
        outcome = run(*line.split(), "-o", "ndjson")
        assert outcome.status == 0
        return re.sub(r'"[a-zA-Z]*(At|Ms|Ns)":[^,}]*', "", outcome.out)

    before = told()
    assert run("store", "upgrade").status == 0
    assert told() == before


def test_work_goes_on_after_the_upgrade(run: Any, path: Path) -> None:
    """What was open is committed, what waits is received, and both kinds of objects are written."""
    assert run("store", "upgrade").status == 0
    for line in (
        "transactions commit 0:3", "produce orders -m x", "consume orders -s E", "tables put accounts B1 1",
        "topics create new", "topics config orders --retention-time 1h", "store gc", "topics delete left --yes",
        "store compact", "store verify --full",
    ):  # fmt: skip
        assert run(*line.split()).status == 0, line


def test_an_upgrade_needs_the_store_alone(run: Any, path: Path) -> None:
    """Exit 5 names who is there; the store stays as it was."""
    before = content(path)["data.mdb"]
    command = (
        f"from storage import Store; Store.open({str(path)!r}, read_only=True); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; exec(sys.argv[1])", command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == b"\n"
        outcome = run("store", "upgrade", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (5, "store-in-use")
        assert str(other.pid) in outcome.error["message"]
        other.kill()
    assert content(path)["data.mdb"] == before
    assert run("store", "upgrade").status == 0


def test_a_backup_of_format_1_is_restored_in_the_present_format(run: Any, path: Path, tmp_path: Path) -> None:
    """The copy is upgraded on the way, which the output says; backup and original keep their format."""
    backup, back = str(tmp_path / "backup"), str(tmp_path / "back")
    assert run("store", "backup", backup).status == 0
    assert run("store", "info", "--store", backup, "-o", "json").json["format"] == 1
    dry = run("store", "restore", backup, "--to", back, "--dry-run")
    outcome = run("store", "restore", backup, "--to", back)
    for told in (dry.out, outcome.out):
        assert f"Upgraded on the way from format 1 to {FORMAT_NUMBER}" in told
    row = run("store", "restore", backup, "--to", f"{back}.2", "-o", "json").json
    assert row["formatBefore"] == 1
    assert not undeclared(row, restore.RESTORED)
    assert run("store", "info", "--store", backup, "-o", "json").json["format"] == 1
    with Store.open(back) as store:
        assert store.reports.store_info().format == FORMAT_NUMBER
        assert store.maintenance.verify_store(full=True) == []
        actions = [record.action for record in store.reports.list_audit_records(2)]
        assert actions == ["store restore", "store upgrade"]
    again = run("store", "restore", back, "--to", f"{back}.3")
    assert "Upgraded" not in again.out
