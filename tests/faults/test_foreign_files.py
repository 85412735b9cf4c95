"""Links, pipes, directories and files without a name in the places of the store's own files: refused, or made anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.errors import StoreInvalid
from tests.faults.children import in_child

FILES = ("data.mdb", "lock.mdb", "store.lock", "reserve", "reads.cache", "received.marks", "store.metrics")
NEEDED = ("data.mdb", "store.lock")
"""Without these there is no store; the others are helps."""


def use(path: str) -> str:
    """Read and write a store in every way that touches a file of it; the code of an error, or `used`."""
    try:
        with Store.open(path, read_only=True) as store:
            list(store.reader("t"))
        with Store.open(path) as store:
            store.create_producer("t", connected=False).send(b"more")
            with store.transaction() as txn:
                store.table("rows").get(b"k", txn=txn)
            store.table("rows").put(b"k", b"value")
            with store.subscribe("t", "s", initial_position=EARLIEST) as consumer:
                consumer.acknowledge(consumer.receive(timeout=0))
            store.maintenance.compact_store()
            assert store.maintenance.verify_store(full=True) == []
    except StoreInvalid as error:
        return error.code
    return "used"


@pytest.fixture
def place(memory: str) -> str:
    """A store that has all of its files."""
    path = os.path.join(memory, "store")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("t")
        store.create_table("rows")
    assert use(path) == "used"
    assert set(FILES) <= set(os.listdir(path))
    return path


def link(file: str, victim: str) -> None:
    """A symbolic link to a file of somebody."""
    os.symlink(victim, file)


def second_name(file: str, victim: str) -> None:
    """A second name of a file of somebody."""
    os.link(victim, file)


def pipe(file: str, victim: str) -> None:
    """A pipe, which blocks whoever opens it."""
    os.mkfifo(file)


def directory(file: str, victim: str) -> None:
    """A directory."""
    os.mkdir(file)


def dangling(file: str, victim: str) -> None:
    """A link to nothing: following it would make a file elsewhere."""
    os.symlink(victim + ".nothing", file)


@pytest.mark.parametrize("put", [link, second_name, pipe, directory, dangling], ids=lambda put: put.__name__)
@pytest.mark.parametrize("name", FILES)
def test_what_stands_in_a_files_place_is_neither_followed_nor_waited_for(
    place: str, name: str, put: Callable[[str, str], None]
) -> None:
    """The file that a link leads to keeps every byte, nothing is made elsewhere, and nothing blocks or dies."""
    file, victim = os.path.join(place, name), os.path.join(os.path.dirname(place), "victim")
    shutil.copyfile(file, victim)
    before = Path(victim).read_bytes()
    os.unlink(file)
    put(file, victim)
    ended = in_child(lambda: use(place))
    assert ended.death is None, ended.death
    assert ended.result == "used" or ended.result.startswith(("store-", "not-", "corrupt-")), ended.result
    if name in NEEDED and put is not second_name:
        assert ended.result != "used"
    assert Path(victim).read_bytes() == before or put is second_name
    assert not os.path.lexists(victim + ".nothing")
