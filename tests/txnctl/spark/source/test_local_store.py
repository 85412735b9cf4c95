"""Local store: `txnctl/spark/source/local_store.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from storage.errors import StoreInvalid, StoreNotFound
from tests.txnctl.spark.source.topic_range_steps import ranges, values
from txnctl.spark.source.topic_range import TopicRange


def test_a_store_that_was_replaced_is_not_read_for_the_old_one(
    store: Store, path: str, tmp_path: Path
) -> None:
    """Positions of another incarnation mean nothing."""
    store.create_topic("t")
    store.create_producer("t").send(b"1")
    plan = ranges(path)
    store.maintenance.backup_store(str(tmp_path / "copy"))
    Store.restore(str(tmp_path / "copy"), str(tmp_path / "restored"))
    moved = [TopicRange(**{**vars(part), "local_store": type(part.local_store)(str(tmp_path / "restored"), part.local_store.identity)})
             for part in plan]  # fmt: skip
    with pytest.raises(StoreInvalid, match="was replaced"):
        values(moved)


def test_a_task_on_another_host_says_what_it_needs(store: Store, path: str) -> None:
    """The error names host and path, and the option that helps."""
    store.create_topic("t")
    store.create_producer("t").send(b"1")
    (part,) = ranges(path)
    elsewhere = TopicRange(
        **{**vars(part), "local_store": type(part.local_store)("/nowhere/store", part.local_store.identity)}
    )
    with pytest.raises(StoreNotFound, match=r"no store at /nowhere/store on host \S+") as error:
        values([elsewhere])
    assert "offloadPath" in (error.value.hint or "")
    assert "offloadPath" in "".join(error.value.__notes__)


def test_a_store_that_is_not_there_cannot_be_planned(tmp_path: Path) -> None:
    """And nothing is created."""
    with pytest.raises(StoreNotFound):
        ranges(str(tmp_path / "none"))
    assert list(tmp_path.iterdir()) == []
