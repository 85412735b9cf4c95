"""LMDB's table of readers: what dead readers hold is freed, and a full table is said to be full."""

from __future__ import annotations

import os

import pytest

from storage import Store
from storage.errors import ReadersFull
from tests.processes.child import Child, Children
from tests.row_json import row_json

SLOTS = 6

VIEWS = """
    from contextlib import ExitStack
    from storage.disk.lmdb import data_file
    data_file.READERS_MAX = int(sys.argv[2])
    with Store.open(path, read_only=True) as store, ExitStack() as views:
        try:
            for number in range(int(sys.argv[3])):
                views.enter_context(store.connection.view())
        except errors.ReadersFull as error:
            assert error.exit_code == 5 and error.retryable and error.hint
            say("full", number)
        say("holding")
        hear()
    say("left")
    hear()
"""


@pytest.fixture
def small_table(path: str) -> None:
    """A lock file with a header and a few slots, as LMDB makes where `max_readers` is small."""
    with open(os.path.join(path, "lock.mdb"), "wb") as table:
        table.write(bytes(128 + 64 * SLOTS))


def test_places_in_use_are_those_in_use_now(path: str, children: Children) -> None:
    """LMDB's own figure is how many there ever were at once; who has left is not among them."""
    with Store.open(path, read_only=True) as store:
        assert row_json(store.reports.store_info())["readersInUse"] == 0
        reader = children.run(VIEWS, "512", "3")
        reader.expect("holding")
        assert (
            row_json(store.reports.store_info())["readersInUse"]
            == row_json(store.reports.store_overview())["store"]["readersInUse"]
            == 3
        )
        reader.say()
        reader.expect("left")
        assert (
            row_json(store.reports.store_info())["readersInUse"]
            == row_json(store.reports.store_overview())["readers"]["inUse"]
            == 0
        )


def hold_views(children: Children, views: int) -> Child:
    """A process that was the first to open the store, with a small table of readers, and holds views open."""
    child = children.run(VIEWS, SLOTS, views)
    child.expect("holding")
    return child


def test_a_killed_reader_is_gone_from_the_table_when_somebody_opens_for_writing(
    path: str, children: Children
):
    """Its slot no longer keeps old pages from being used again."""
    reader = hold_views(children, 1)
    with Store.open(path, read_only=True) as store:
        rows = [row for row in row_json(store.reports.list_readers()) if row["pid"] == reader.pid]
        assert [row["state"] for row in rows] == ["reading"]
    reader.kill()
    with Store.open(path) as store:
        assert [row for row in row_json(store.reports.list_readers()) if row["pid"] == reader.pid] == []
        producer = store.create_producer("t")
        for _ in range(20):
            producer.send(b"x" * 1000)
        used = row_json(store.reports.store_info())["usedBytes"]
        for _ in range(200):
            producer.send(b"")
        assert row_json(store.reports.store_info())["usedBytes"] - used < 200 * 2048


@pytest.mark.usefixtures("small_table")
def test_a_full_table_is_an_error_in_words_until_there_is_room(path: str, children: Children):
    """ReadersFull for whoever comes next, in the same process and in another one; then it works again."""
    first = hold_views(children, SLOTS - 1)
    second = children.run(VIEWS, SLOTS, SLOTS)
    assert second.expect("full") == "1"
    second.expect("holding")
    with pytest.raises(ReadersFull), Store.open(path, read_only=True) as store:
        store.topics()
    second.say("leave")
    second.expect("left")
    with Store.open(path, read_only=True) as store:
        assert store.topics() == ["t"]
    first.say("leave")
    first.expect("left")


@pytest.mark.usefixtures("small_table")
def test_dead_readers_do_not_fill_the_table(path: str, children: Children):
    """Every slot belongs to killed processes: a process that has the store open frees them when it wants one."""
    survivor = children.run(
        """
        from storage.disk.lmdb import data_file
        data_file.READERS_MAX = int(sys.argv[2])
        with Store.open(path, read_only=True) as store:
            say("open")
            hear()
            say("topics", *store.topics())
        """,
        SLOTS,
    )
    survivor.expect("open")
    for _ in range(2):
        reader = hold_views(children, SLOTS // 2)
        reader.kill()
    survivor.say("look")
    assert survivor.expect("topics") == "t"
    with Store.open(path) as store:
        assert store.topics() == ["t"]
