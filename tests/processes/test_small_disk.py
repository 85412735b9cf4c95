"""Commands on a disk filled to the last page say what they did: readings that need room, settings, and output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.test_reserve import run_on_small_disk

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("way", ["object", "number"])
def test_a_transaction_reads_where_there_is_no_read_cache(tmp_path: Path, way: str) -> None:
    """The file is made on the room of the reserve, of which consumers leave a quarter; what was read is recorded."""
    run_on_small_disk(
        tmp_path,
        f"""
Store.create(path)
with Store.open(path) as store:
    store.create_topic("t")
    store.create_table("accounts")
    store.table("accounts").put(b"B1", b"100")
    txn = store.begin_transaction() if {way!r} == "number" else None
cache = os.path.join(path, "reads.cache")
with contextlib.suppress(FileNotFoundError):
    os.unlink(cache)
with Store.open(path) as store:
    fill(store, "t")
assert not os.path.exists(cache)
with Store.open(path) as store:
    accounts = store.table("accounts")
    if txn is None:
        with store.transaction() as own:
            assert accounts.get(b"B1", txn=own) == b"100"
            assert [row.value for row in accounts.scan(txn=own)] == [b"100"]
    else:
        assert accounts.get(b"B1", txn=txn) == b"100"
    assert os.path.exists(cache)
    assert 1 << 18 <= reserve() < 1 << 20
    store.admin.topics.delete_topic("t", force=True)
    store.create_topic("back")
    assert store.maintenance.verify_store(full=True) == []
""",
    )


def test_a_reserve_that_the_disk_has_no_room_for_is_said(tmp_path: Path) -> None:
    """The setting stands, a warning has both sizes, and the next write with room extends the file."""
    run_on_small_disk(
        tmp_path,
        """
txnctl("txnctl store init")
txnctl("txnctl topics create t")
assert "room" not in txnctl("txnctl store config reserve 2M")
with Store.open(path) as store:
    fill(store, "t")
said = txnctl("txnctl store config reserve 4M")
assert "warning: the disk has room for 2.0 MiB of the reserve, not for 4.0 MiB" in said, said
assert reserve() < 4 << 20
assert "the disk has room" not in txnctl("txnctl store config reserve 8M --dry-run")
txnctl("txnctl topics delete t --yes")
assert txnctl("txnctl store config reserve") == "4M\\n"
assert "the disk has room" not in txnctl("txnctl store config reserve 1M")
""",
    )


def test_a_report_that_finds_no_room_claims_no_change(tmp_path: Path) -> None:
    """A command that only reads has changed nothing; one that writes says that its change is kept."""
    run_on_small_disk(
        tmp_path,
        """
txnctl("txnctl store init")
txnctl("txnctl topics create t")
with Store.open(path) as store:
    fill(store, "t")
said = txnctl(f"txnctl report --html {disk}/page.html", status=6)
assert "Make room where the output goes" in said and "kept" not in said, said
run = subprocess.run(
    [sys.executable, "-m", "txnctl", "store", "gc", "--store", path], stdout=open("/dev/full", "w"), stderr=-1, text=True
)
assert run.returncode == 6 and "What the command changed is kept" in run.stderr, run.stderr
run = subprocess.run(
    [sys.executable, "-m", "txnctl", "topics", "list", "--store", path], stdout=open("/dev/full", "w"), stderr=-1, text=True
)
assert run.returncode == 6 and "Make room" in run.stderr and "kept" not in run.stderr, run.stderr
""",
    )
