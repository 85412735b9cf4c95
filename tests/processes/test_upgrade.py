"""A killed upgrade leaves format 1 untouched or format 2 whole: there is no state between."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage import Store, faults
from storage.disk.schema import FORMAT_NUMBER
from storage.errors import OldFormat
from tests.format.small_store import unpacked
from tests.processes.child import ROOT, Children

UPGRADE = """
    from storage import faults
    if sys.argv[2]:
        faults.arm(sys.argv[2], lambda: os.kill(os.getpid(), signal.SIGKILL))
    with Store.open(path + "1") as store:
        store.maintenance.upgrade_store()
"""
TOPICS = ["accounts", "left", "orders", "parcels"]


@pytest.fixture
def old(path: str) -> Path:
    """The small store of format 1, where the children upgrade a store."""
    return unpacked(1, Path(path + "1"))


def check_whole(path: Path) -> int:
    """That the store has one format or the other, whole, and is upgraded by the next attempt; the format found."""
    with Store.open(path) as store:
        found = store.reports.store_info().format
        assert store.maintenance.verify_store(full=True) == []
        if found != FORMAT_NUMBER:
            with pytest.raises(OldFormat):
                store.create_topic("new")
        audited = [record.action for record in store.reports.list_audit_records(1)]
        assert audited == (["store upgrade"] if found == FORMAT_NUMBER else ["tables delete"])
        store.maintenance.upgrade_store()
        store.create_topic("new")
        assert [name.rpartition("/")[2] for name in store.topics()] == sorted([*TOPICS, "new"])
        assert store.maintenance.verify_store(full=True) == []
    return found


@pytest.mark.parametrize("point", [point for point in faults.POINTS if point.startswith("environment.")])
def test_an_upgrade_killed_at_a_fault_point_is_done_or_not_begun(
    children: Children, old: Path, point: str
) -> None:
    """Before the commit every byte of the data file is the old one; after it the store is whole."""
    before = (old / "data.mdb").read_bytes()
    assert children.run(UPGRADE, point).wait() == -signal.SIGKILL
    is_done = point == "environment.after_commit"
    if not is_done:
        assert (old / "data.mdb").read_bytes()[: len(before)] == before
    assert check_whole(old) == (FORMAT_NUMBER if is_done else 1)


@pytest.mark.slow
@pytest.mark.needs_program("strace")
@pytest.mark.parametrize(
    "call", ["pwrite64", "pwritev", "writev", "fdatasync", "fsync", "fallocate", "ftruncate", "fcntl"]
)
def test_an_upgrade_killed_at_a_system_call_is_done_or_not_begun(tmp_path: Path, call: str) -> None:
    """Killed at every call of a kind that changes a file or a lock, until one attempt needs no further call."""
    small, found = unpacked(1, tmp_path / "small"), []
    for number in range(1, 100):
        path = tmp_path / f"store.{number}"
        shutil.copytree(small, path)
        words = [sys.executable, "-m", "txnctl", "store", "upgrade", "--store", str(path)]
        trace = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"inject={call}:signal=KILL:when={number}"]
        run = subprocess.run(
            [*trace, "-e", f"trace={call}", *words], cwd=ROOT, capture_output=True, check=False
        )
        if run.returncode == 0:
            break
        assert run.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), run
        found.append(check_whole(path))
        shutil.rmtree(path)
    else:
        pytest.fail(f"an upgrade makes more than {number} calls of {call}")
    assert found == sorted(found), "a store upgraded by a commit was not upgraded by a later one"
    if call in ("pwrite64", "fdatasync"):
        assert found, f"an upgrade makes no call of {call}"


def test_two_upgrades_at_once_are_one(children: Children, old: Path) -> None:
    """Each process upgrades, finds the store upgraded, or is told that it is in use; the store is whole."""
    code = UPGRADE.replace("with Store", "say('ready'); hear()\n    with Store")
    upgraders = [children.run(code, "") for _ in range(4)]
    for upgrader in upgraders:
        upgrader.expect("ready")
    for upgrader in upgraders:
        upgrader.say("go")
    for upgrader in upgraders:
        assert upgrader.wait() == 0 or re.search("StoreInUse", upgrader.complaint())
    check_whole(old)


def test_readers_of_the_old_format_keep_the_upgrade_out(children: Children, old: Path) -> None:
    """A process that has the store open knows nothing of the new format; the store stays as it was."""
    reader = children.run(
        """
        with Store.open(path + "1", read_only=True) as store:
            say("open")
            hear()
        """
    )
    reader.expect("open")
    before = (old / "data.mdb").read_bytes()
    refused = children.run(UPGRADE, "")
    assert refused.wait() == 1
    assert "StoreInUse" in refused.complaint()
    assert str(reader.pid) in refused.complaint()
    assert (old / "data.mdb").read_bytes() == before
    reader.say("go on")
    reader.succeed()
    children.run(UPGRADE, "").succeed()
    assert check_whole(old) == FORMAT_NUMBER


def test_an_upgrade_has_room_on_a_full_disk(tmp_path: Path) -> None:
    """The reserve lets it through: on a store of format 1 with a reserve nothing could be freed before the upgrade."""
    from tests.processes.test_reserve import run_on_small_disk

    run_on_small_disk(
        tmp_path,
        """
from tests.format.small_store import unpacked
from pathlib import Path
unpacked(1, Path(path))
with open(os.path.join(path, "reserve"), "wb") as file:
    os.posix_fallocate(file.fileno(), 0, 1 << 20)
os.chmod(os.path.join(path, "reserve"), 0o600)
Store.open(path).close()
with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", buffering=0) as filler:
    while filler.write(bytes(4096)):
        pass
with Store.open(path) as store:
    store.maintenance.upgrade_store()
    store.admin.topics.delete_topic("orders", force=True)
    assert store.maintenance.verify_store(full=True) == []
""",
    )
