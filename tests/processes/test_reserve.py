"""A disk filled to the last page, on a real small disk: the reserve lets what frees space through, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage import Store
from storage.disk.schema import STORE
from storage.errors import InvalidValue
from storage.topic import retention
from tests.not_run import forbidden
from tests.processes import disks
from tests.processes.child import PRELUDE, ROOT

pytestmark = pytest.mark.slow

DISK = """
import random, re, shlex, subprocess
from tests.processes import disks

def reserve():
    return os.stat(os.path.join(path, "reserve")).st_size

def txnctl(line, status=0):
    words = shlex.split(line)[1:]
    store = () if "--store" in words else ("--store", path)
    command = [sys.executable, "-m", "txnctl", *words, *store]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == status, (line, run.returncode, run.stdout, run.stderr)
    return run.stdout + run.stderr

def fill(store, topic, length=2_000, txn=None):
    producer, sent = store.create_producer(topic), 0
    for value in (b"x" * length, b"y"):
        with contextlib.suppress(errors.StoreFull):
            while True:
                producer.send(value, txn=txn)
                sent += 1
    assert disks.free_bytes(path) == 0
    return sent

os.mkdir(disk := sys.argv[1])
if not disks.mount_small(disk, "12m"):
    print("no mount")
    sys.exit()
path = os.path.join(disk, "store")
"""


def run_on_small_disk(tmp_path: Path, code: str) -> None:
    """Run code on a disk of 12 MiB of its own; skipped where the machine forbids mounts."""
    command = [sys.executable, "-c", PRELUDE + DISK + code, str(tmp_path / "disk")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    if "no mount" in run.stdout:
        # A limit on the size of files would spare the file of the reserve, whose room is the point here.
        forbidden("mounting a small disk")


def test_the_words_of_the_tool_lead_out_of_a_full_disk(tmp_path: Path):
    """From the error of the refused produce on, only commands that the tool prints are typed, and produce works."""
    run_on_small_disk(
        tmp_path,
        """
txnctl("txnctl store init")
txnctl("txnctl topics create orders")
txnctl("txnctl topics create other")
with Store.open(path) as store:
    fill(store, "orders")
assert reserve() == 1 << 20
words = txnctl("txnctl produce other -m refused", status=6)
look = re.search(r"`(txnctl [^`]*)`", words)[1]
assert "store space" in look and "--freeable" in look, words
assert look in txnctl("txnctl doctor")
for _ in range(9):
    commands = re.findall(r"Next: (txnctl .*)", txnctl(look))
    for command in commands:
        words = txnctl(command + " --yes")
    run = subprocess.run([sys.executable, "-m", "txnctl", "produce", "other", "-m", "accepted", "--store", path])
    if run.returncode == 0:
        break
assert run.returncode == 0
txnctl("txnctl store verify --full")
with Store.open(path) as store:
    assert fill(store, "orders") > 2_000, "the freed pages are used again"
""",
    )


FREEING = {
    "topic": 'store.admin.topics.delete_topic("t", force=True)',
    "truncate": 'store.admin.topics.truncate_topic("t", force=True)',
    "trim": 'store.admin.topics.set_retention("t", size=0); store.admin.topics.trim_topic("t")',
    "gc": "store.admin.settings.set_retention(size=0); store.maintenance.collect_garbage()",
    "abort": 'txn.abort(); store.admin.topics.truncate_topic("t")',
    "operators-abort": "store.admin.transactions.abort_transaction(txn); "
    'store.admin.topics.truncate_topic("t")',
    "clear-backlog": 'store.admin.subscriptions.clear_backlog("t", "s"); '
    'store.admin.topics.truncate_topic("t")',
    "skip": 'store.admin.subscriptions.skip_messages("t", "s", 500); store.admin.topics.truncate_topic("t")',
    "unsubscribe": 'store.admin.subscriptions.delete_subscription("t", "s"); '
    'store.admin.topics.truncate_topic("t")',
    "table": 'store.admin.tables.delete_table("rows")',
}


@pytest.mark.parametrize("way", FREEING)
def test_every_change_that_frees_has_room_on_a_full_disk(tmp_path: Path, way: str):
    """Each of them is done from the last page on, keeps nearly all of the reserve, and makes room for a produce."""
    run_on_small_disk(
        tmp_path,
        f"""
Store.create(path)
with Store.open(path) as store:
    store.create_topic("t")
    store.create_topic("other")
    store.create_table("rows")
    table = store.table("rows")
    if {way!r} in ("clear-backlog", "skip", "unsubscribe"):
        store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
    for number in range(300):
        table.put(b"%d" % number, b"v" * 2_000)
    txn = store.begin_transaction() if {way!r} == "operators-abort" else store.transaction()
    fill(store, "t", txn=txn if "abort" in {way!r} else None)
    before = reserve()
    assert before == 1 << 20
    {FREEING[way]}
    assert (1 << 20) - 200_000 < reserve() <= 1 << 20
    store.create_producer("other").send(b"back")
    assert store.maintenance.verify_store(full=True) == []
""",
    )


def test_consumers_drain_a_full_store_and_leave_room_for_deletions(tmp_path: Path):
    """A Shared consumer receives and acknowledges a full store in random order; a quarter of the reserve stays."""
    run_on_small_disk(
        tmp_path,
        """
Store.create(path)
with Store.open(path) as store:
    store.create_topic("t")
    sent = fill(store, "t")
    consumer = store.subscribe("t", "s", initial_position=EARLIEST, subscription_type=SubscriptionType.SHARED)
    messages = [consumer.receive(timeout=1) for _ in range(sent)]
    random.Random(1).shuffle(messages)
    for message in messages:
        consumer.acknowledge(message)
    consumer.close()
    assert 1 << 18 <= reserve() < 1 << 20
    store.admin.settings.set_retention(size=0)
    store.maintenance.collect_garbage()
    assert fill(store, "t") > 1_000
    store.admin.topics.delete_topic("t", force=True)
    assert store.maintenance.verify_store(full=True) == []
""",
    )


def test_a_share_leaves_its_part_and_other_changes_nothing_of_the_reserve(tmp_path: Path):
    """Changes without a share are refused and leave the reserve whole, however often they try."""
    run_on_small_disk(
        tmp_path,
        """
Store.create(path)
with Store.open(path) as store:
    store.create_topic("t")
    fill(store, "t")
    attempts = [
        lambda: store.create_topic("more"), lambda: store.create_producer("t").send(b"x" * 9_000),
        lambda: store.admin.subscriptions.create_subscription("t", "s"), store.begin_transaction,
    ]
    for _ in range(20):
        for attempt in attempts:
            with contextlib.suppress(errors.StoreFull, errors.AlreadyExists):
                attempt()
    assert reserve() == 1 << 20
""",
    )


def test_a_freeing_change_that_needs_more_than_the_reserve_leaves_the_reserve_whole(tmp_path: Path):
    """Refused however often, such a change takes nothing away from the next one, which fits."""
    run_on_small_disk(
        tmp_path,
        """
from storage.disk.reserve import ReserveShare
from storage.disk.schema import AUDIT

def large(batch):
    for number in range(100):
        batch.put(AUDIT, b"z%d" % number, bytes(50_000))

Store.create(path)
with Store.open(path) as store:
    store.create_topic("t")
    sent = fill(store, "t")
    for share in (ReserveShare.WHOLE, ReserveShare.PART, ReserveShare.WHOLE):
        with contextlib.suppress(errors.StoreFull):
            store.connection.write(large, share=share)
            raise AssertionError("5 MB do not fit")
        assert reserve() == 1 << 20, share
    assert len(list(store.reader("t"))) == sent
    store.admin.topics.truncate_topic("t")
    store.create_producer("t").send(b"back")
    assert store.maintenance.verify_store(full=True) == []
""",
    )


def test_a_later_write_with_room_tops_the_reserve_up(tmp_path: Path):
    """A reserve that a kill left given up is whole after the next write, of any kind, once there is room."""
    run_on_small_disk(
        tmp_path,
        """
Store.create(path)
os.truncate(os.path.join(path, "reserve"), 0)
with open(os.path.join(disk, "filler"), "wb") as filler:
    filler.write(bytes(11 << 20))
with Store.open(path) as store:
    store.create_topic("t")
    assert 0 < reserve() < 1 << 20, "as much as there is"
    with contextlib.suppress(errors.StoreFull):
        store.create_topic("u")
os.unlink(os.path.join(disk, "filler"))
with Store.open(path) as store:
    store.create_topic("v")
    assert reserve() == 1 << 20
""",
    )


def test_the_reserve_is_kept_from_the_creation_on_and_follows_its_setting(tmp_path: Path):
    """Allocated, private, remade after its loss; as large as the setting says at once, and absent blocks at 0."""
    path = tmp_path / "store"
    Store.create(str(path))
    file = path / "reserve"
    assert file.stat().st_blocks * 512 >= 1 << 20
    assert file.stat().st_mode & 0o777 == 0o600
    file.unlink()
    with Store.open(str(path)) as store:
        store.create_topic("t")
        assert file.stat().st_size == 1 << 20
        changed = store.admin.settings.set_reserve(2 << 20)
        assert changed.effects == (1 << 20, 2 << 20)
        assert file.stat().st_blocks * 512 >= 2 << 20
        store.admin.settings.set_reserve(0)
        assert file.stat().st_size == 0
        with pytest.raises(InvalidValue):
            store.admin.settings.set_reserve(4096)
        assert store.reports.reserve_size() == 0
        with store.connection.view() as view:
            assert view.count(STORE) == 2
            assert not retention.are_set(view), "the record of the reserve is no limit"
        store.admin.topics.set_retention("t", size=0)
        with store.connection.view() as view:
            assert retention.are_set(view)


@pytest.mark.parametrize("kind", ["link", "second name", "directory"])
def test_a_file_that_is_not_the_stores_own_is_left_alone(tmp_path: Path, kind: str):
    """A link, a file with a second name and a directory are neither cut nor extended, and writes go on."""
    path, other = tmp_path / "store", tmp_path / "other"
    Store.create(str(path))
    other.write_bytes(b"of the user")
    file = path / "reserve"
    file.unlink()
    if kind == "link":
        file.symlink_to(other)
    elif kind == "second name":
        os.link(other, file)
    else:
        file.mkdir()
    with Store.open(str(path)) as store:
        store.create_topic("t")
        store.admin.settings.set_reserve(0)
    assert other.read_bytes() == b"of the user"


def test_the_small_disk_is_a_disk_of_its_own(tmp_path: Path):
    """The machine's disk has room while the small one is full: the tests above fill only their own."""
    assert disks.free_bytes(str(tmp_path)) > 12 << 20
