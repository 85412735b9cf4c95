"""Root: `txnctl/spark/ledger_files/root.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from storage.errors import OffloadInvalid, TopicNotFound
from tests.txnctl.spark.offload_steps import COMMITTED, fill, rows, span
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


def test_a_topic_created_again_has_a_directory_of_its_own(store: Store, root: Root):
    """Its files are never mixed up with those of the topic that had its name."""
    fill(store)
    before = span(store, COMMITTED)
    old = offload(store, "t", root)
    store.admin.topics.delete_topic("t")
    fill(store, 11)
    new = offload(store, "t", root)
    assert new.directory.where() != old.directory.where()
    assert rows(file_partitions(store, [span(store, COMMITTED)], root.uri)) == rows([span(store, COMMITTED)])
    with pytest.raises(TopicNotFound, match="created again"):
        file_partitions(store, [before], root.uri)


def test_a_restored_store_has_a_directory_of_its_own(store: Store, root: Root, tmp_path: Path):
    """It is another incarnation, whose ledgers may differ from those written after the backup."""
    fill(store)
    old = offload(store, "t", root)
    store.maintenance.backup_store(tmp_path / "backup")
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    with Store.open(tmp_path / "restored") as restored:
        new = offload(restored, "t", root)
        assert new.directory.where() != old.directory.where()
        shared = [file.ledgers for file in old.manifest.files]
        assert [file.ledgers[: len(shared[0])] for file in new.manifest.files] == shared


def test_two_copies_of_a_store_that_were_both_written_to_are_told_apart(
    store: Store, root: Root, tmp_path: Path
):
    """A ledger that is not the one offloaded under its number is an error, not a mixture."""
    fill(store, 7)
    store.maintenance.backup_store(tmp_path / "copy")
    fill(store, 11)
    offload(store, "t", root)
    with Store.open(tmp_path / "copy") as copy:
        fill(copy, 17)
        with pytest.raises(OffloadInvalid, match="two copies"):
            offload(copy, "t", root)
