"""Compacting to another disk: from a full disk, alone, and whole or not at all."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from storage import Store, faults
from tests.processes.child import Children
from tests.processes.test_reserve import run_on_small_disk

COMPACT = """
    from storage import faults
    if sys.argv[2]:
        faults.arm(sys.argv[2], lambda: os.kill(os.getpid(), signal.SIGKILL))
    with Store.open(path) as store:
        store.maintenance.compact_store(path + ".new")
"""


@pytest.mark.slow
def test_a_store_on_a_full_disk_moves_to_another_one(tmp_path: Path) -> None:
    """Nothing is written beside the original, without its reserve too; the new store takes messages again."""
    run_on_small_disk(
        tmp_path,
        """
txnctl("txnctl store init")
txnctl("txnctl topics create orders")
with Store.open(path) as store:
    sent = fill(store, "orders")
os.truncate(os.path.join(path, "reserve"), 0)
with open(os.path.join(disk, "filler"), "wb", buffering=0) as filler, contextlib.suppress(OSError):
    while filler.write(bytes(4096)):
        pass
assert disks.free_bytes(path) == 0
def content():
    return {name: open(os.path.join(path, name), "rb").read() for name in ("data.mdb", "reserve")}
before, names, new = content(), sorted(os.listdir(path)), disk + ".new"
txnctl(f"txnctl store compact --to {new} --dry-run")
assert not os.path.exists(new)
said = txnctl(f"txnctl store compact --to {new}")
assert f"Go on with {new} alone" in said, said
verify = re.search(r"`(txnctl [^`]*)`", said)[1]
assert new in verify
txnctl(verify)
assert content() == before and sorted(os.listdir(path)) == names
txnctl(f"txnctl produce orders -m accepted --store {new}")
with Store.open(new) as store:
    assert len(list(store.reader("orders"))) == sent + 1
    assert store.maintenance.verify_store(full=True) == []
""",
    )


@pytest.mark.parametrize(
    "point",
    [
        "environment.before_commit",
        "environment.after_commit",
        "store.create.before_rename",
        "store.create.after_rename",
    ],
)
def test_a_killed_compaction_leaves_the_new_store_whole_or_not_at_all(
    children: Children, path: str, point: str
) -> None:
    """The original is unchanged, and the next compaction to the same place removes what is left."""
    before = Path(path, "data.mdb").read_bytes()
    assert children.run(COMPACT, point).wait() == -signal.SIGKILL
    assert Path(path, "data.mdb").read_bytes() == before
    place = Path(path + ".new")
    assert place.exists() is (point == "store.create.after_rename")
    if not place.exists():
        children.run(COMPACT, "").succeed()
    with Store.open(place) as store:
        assert store.maintenance.verify_store(full=True) == []
    assert not [name for name in os.listdir(place.parent) if name.startswith(".")]
    assert set(faults.POINTS) >= {point}


def test_other_processes_keep_a_compaction_out(children: Children, path: str) -> None:
    """A producer that goes on in the original would write messages that the new store lacks."""
    reader = children.run(
        """
        with Store.open(path, read_only=True) as store:
            say("open")
            hear()
        """
    )
    reader.expect("open")
    refused = children.run(COMPACT, "")
    assert refused.wait() == 1
    assert "StoreInUse" in refused.complaint()
    assert str(reader.pid) in refused.complaint()
    assert not os.path.exists(path + ".new")
    reader.say("go on")
    reader.succeed()
    children.run(COMPACT, "").succeed()
