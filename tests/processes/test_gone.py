"""A store that is removed, moved or replaced while processes have it open: they notice, and say so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import Store
from storage.errors import StoreNotFound
from tests.processes.child import Children

WAITS = {
    "reader": """
        with Store.open(path, read_only=True) as store:
            say("waits")
            store.reader("t").read_next(timeout=60)
    """,
    "looking reader": """
        with Store.open(path, read_only=True) as store:
            reader = store.reader("t")
            say("waits")
            for _ in range(6000):
                assert not reader.has_message_available()
                let_pass(0.01, "looks have a pace")
    """,
    "consumer": """
        with Store.open(path) as store, store.subscribe("t", "s") as consumer:
            say("waits")
            consumer.receive(timeout=60)
    """,
    "transactions wait": """
        with Store.open(path) as store:
            say("waits")
            store.reports.wait_for_transaction("0:1", timeout=60)
    """,
    "transaction": """
        with Store.open(path) as store:
            with store.transaction() as txn:
                store.create_producer("t").send(b"1", txn=txn)
                txn.flush()
                say("waits")
                hear()
    """,
}


def remove(path: str) -> None:
    shutil.rmtree(path)


def move(path: str) -> None:
    os.rename(path, path + "-moved")


def replace(path: str) -> None:
    move(path)
    Store.create(path)


@pytest.mark.parametrize("fate", [remove, move, replace])
@pytest.mark.parametrize("waits", WAITS)
def test_who_waits_in_a_store_that_goes_away_is_told(
    path: str, children: Children, waits: str, fate: Callable[[str], None]
):
    """Within the patience of a test, not at the end of its wait; what took the place is not touched."""
    other = path + "-aside"
    shutil.copytree(path, other)
    with Store.open(path) as store:
        assert str(store.begin_transaction()) == "0:1"
    waiting = children.run(WAITS[waits])
    waiting.expect("waits")
    fate(path)
    before = tree(path)
    if waits == "transaction":
        waiting.say("go on")
    assert waiting.wait(20) == 1
    assert f"StoreNotFound: the store at {path} was removed, moved or replaced" in waiting.complaint()
    assert tree(path) == before
    shutil.rmtree(path, ignore_errors=True)
    os.rename(other, path)


def tree(path: str) -> dict[str, bytes]:
    """The files in a directory."""
    if not os.path.isdir(path):
        return {}
    return {each.name: Path(each.path).read_bytes() for each in os.scandir(path) if each.name != "lock.mdb"}


def test_nothing_is_acknowledged_that_goes_into_files_without_a_name(path: str, children: Children):
    """A producer whose store was moved away is refused; opened anew at its new place the store takes messages."""
    with Store.open(path) as store:
        producer = store.create_producer("t")
        producer.send(b"1")
        move(path)
        with pytest.raises(StoreNotFound) as caught:
            producer.send(b"2")
        assert caught.value.exit_code == 6
    os.rename(path + "-moved", path)
    with Store.open(path) as store:
        store.create_producer("t").send(b"3")
        assert [message.value for message in store.reader("t")] == [b"1", b"3"]
