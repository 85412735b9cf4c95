"""Upkeep: `txnctl/spark/ledger_files/upkeep.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import OffloadInvalid
from tests.txnctl.spark.offload_steps import COMMITTED, UNCOMMITTED, files, fill, rows, span
from txnctl.pipelines import offload as job
from txnctl.spark.ledger_files import offload as offloading, upkeep
from txnctl.spark.ledger_files.layout import LEDGERS, MANIFESTS, RANGES, UNDECIDED
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


def test_what_a_killed_run_left_is_found_and_removed(store: Store, root: Root):
    """A process that dies before the manifest names its file leaves nothing that is read, and the next run goes on."""
    fill(store)
    program = (
        "import os, sys\n"
        "from storage import Store\n"
        "from txnctl.spark.ledger_files import directory, offload, root\n"
        "directory.TopicDirectory.publish = lambda *_: os._exit(9)\n"
        "with Store.open(sys.argv[1], read_only=True) as store:\n"
        "    offload.offload(store, 't', root.Root(sys.argv[2]))\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, store.path, root.uri], check=False)
    assert killed.returncode == 9
    done = offload(store, "t", root)
    assert len(done.added) == 1
    assert len(files(done, LEDGERS)) == 2
    upkeep.verify(done.directory, done.manifest)
    assert upkeep.collect(done.directory, done.manifest, 1 << 62) == 1
    assert files(done, LEDGERS) == [done.added[0].name]


def test_what_another_run_offloads_meanwhile_is_not_collected(
    store: Store, root: Root, monkeypatch: pytest.MonkeyPatch
):
    """However short a time files are kept: what counts is the manifest at that moment, not the one that was written."""
    fill(store, 10)
    verify = upkeep.verify

    def slowly(*arguments: Any) -> None:
        verify(*arguments)
        fill(store, 10)
        offload(store, "t", root)

    monkeypatch.setattr(upkeep, "verify", slowly)
    row = job.offload_topic(store, "t", job.OffloadOptions(root.uri, verify=True, retain_ms=-60_000))
    assert row.removed_files == 1, "the manifest before the last one"
    done = offload(store, "t", root)
    verify(done.directory, done.manifest)
    assert len(done.manifest.files) == 2


def test_a_file_that_is_collected_before_it_is_named_is_never_named(
    store: Store, root: Root, monkeypatch: pytest.MonkeyPatch
):
    """Its run fails, and the next one writes it again."""
    fill(store, 10)
    written = offloading._write_ledgers

    def collected(*arguments: Any) -> Any:
        file = written(*arguments)
        directory = arguments[1]
        assert upkeep.collect(directory, directory.manifest()[1], 1 << 62) == 1
        return file

    with monkeypatch.context() as patched:
        patched.setattr(offloading, "_write_ledgers", collected)
        with pytest.raises(OffloadInvalid, match="does not exist"):
            offload(store, "t", root)
    done = offload(store, "t", root)
    upkeep.verify(done.directory, done.manifest)
    assert len(done.added) == 1


def test_verifying_reads_every_byte(store: Store, root: Root):
    """A single changed byte, and a missing file, are found and named."""
    fill(store)
    done = offload(store, "t", root)
    counted: list[tuple[int, int]] = []
    upkeep.verify(done.directory, done.manifest, lambda *each: counted.append(each))
    assert counted[-1][0] == counted[-1][1] == sum(file.content.rows for file in done.manifest.files)
    file = Path(root.for_spark(done.directory.path).removeprefix("file://"), LEDGERS, done.added[0].name)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(OffloadInvalid, match="checksum") as caught:
        upkeep.verify(done.directory, done.manifest)
    assert done.added[0].name in caught.value.message
    file.unlink()
    with pytest.raises(OffloadInvalid, match="does not exist"):
        upkeep.verify(done.directory, done.manifest)


def test_collecting_removes_what_nobody_needs_and_nothing_else(store: Store, root: Root):
    """Ranges go when their ledgers are offloaded; the hot tail, the manifest that counts and its files stay."""
    fill(store, 10)
    txn = store.transaction()
    with store.create_producer("t") as producer:
        producer.send(b"open", txn=txn)
    file_partitions(store, [span(store, UNCOMMITTED)], root.uri)
    txn.commit()
    fill(store, 1)
    fill(store, 12)
    file_partitions(store, [span(store, COMMITTED)], root.uri)
    done = offload(store, "t", root)
    assert (
        len(files(done, RANGES)) == 2
        and len(files(done, UNDECIDED)) == 1
        and len(files(done, MANIFESTS)) == 2
    )
    assert upkeep.collect(done.directory, done.manifest, 0) == 0
    assert upkeep.collect(done.directory, done.manifest, 1 << 62) == 3
    assert (len(files(done, RANGES)), files(done, UNDECIDED), len(files(done, MANIFESTS))) == (1, [], 1)
    assert rows(file_partitions(store, [span(store, COMMITTED)], root.uri)) == rows([span(store, COMMITTED)])
