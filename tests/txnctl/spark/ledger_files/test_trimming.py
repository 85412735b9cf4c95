"""`topics trim --offloaded`: only what sound files hold, and nothing that is held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Position, Store
from storage.errors import OffloadInvalid
from tests.row_json import row_json
from tests.txnctl.spark.offload_steps import fill
from txnctl.spark.ledger_files.layout import LEDGERS
from txnctl.spark.ledger_files.offload import Offloaded, offload
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.ledger_files.trimming import verified_ledgers


@pytest.fixture
def offloaded(store: Store, tmp_path: Path) -> Offloaded:
    fill(store)
    return offload(store, "t", Root.of_path(str(tmp_path / "off")))


def trim(store: Store, tmp_path: Path, **more: Any) -> Any:
    ledgers = verified_ledgers(store, "t", str(tmp_path / "off"))
    return store.admin.topics.trim_topic("t", offloaded=ledgers, **more).effects


def first_file(offloaded: Offloaded) -> Path:
    name = offloaded.manifest.files[0].name
    return Path(offloaded.directory.where(LEDGERS, name).removeprefix("file://"))


def test_offloaded_ledgers_go_though_everything_is_kept(
    store: Store, tmp_path: Path, offloaded: Offloaded
) -> None:
    """Not the open ledger, and as the dry run says; the audit trail has the address of the files."""
    ledgers = {ledger.ledger_id for file in offloaded.manifest.files for ledger in file.ledgers}
    dry = trim(store, tmp_path, dry_run=True)
    done = trim(store, tmp_path, reason="disk")
    assert done == dry
    assert done.first_position == (max(ledgers) + 1, 0)
    assert done.trimmed.ledgers == len(ledgers)
    record = row_json(store.reports.list_audit_records())[0]
    assert (record["action"], record["reason"]) == ("topics trim", "disk")
    assert record["effects"]["offloadedTo"] == offloaded.directory.where()
    assert trim(store, tmp_path).trimmed.ledgers == 0
    assert store.maintenance.verify_store() == []


def test_nothing_goes_that_is_held(store: Store, tmp_path: Path, offloaded: Offloaded) -> None:
    """By a subscription that has not acknowledged it, which keeps all its messages."""
    store.admin.subscriptions.create_subscription("t", "slow", initial_position=Position(2, 1))
    effects = trim(store, tmp_path)
    assert (effects.first_position, effects.held_by.name) == ((2, 0), "slow")
    with store.subscribe("t", "slow") as consumer:
        assert consumer.receive(timeout=1).message_id.position == (2, 1)


def test_nothing_goes_that_is_not_offloaded(store: Store, tmp_path: Path, offloaded: Offloaded) -> None:
    fill(store, 30)
    last = max(ledger.ledger_id for ledger in offloaded.manifest.files[-1].ledgers)
    assert trim(store, tmp_path).first_position == (last + 1, 0)
    store.admin.topics.truncate_topic("t")
    fill(store, 30)
    assert trim(store, tmp_path).trimmed.ledgers == 0


@pytest.mark.parametrize("damage", ["removed", "flipped", "cut"])
def test_damaged_files_keep_the_ledgers_in_the_store(
    store: Store, tmp_path: Path, offloaded: Offloaded, damage: str
) -> None:
    """Missing, or with other bytes than the manifest says: the error names the file."""
    file = first_file(offloaded)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(bytes(content) if damage == "flipped" else bytes(content[:-100]))
    with pytest.raises(OffloadInvalid, match=file.name):
        trim(store, tmp_path)
    assert next(iter(store.reader("t", start=EARLIEST))).message_id.position == (1, 0)


def test_damage_of_files_that_are_not_needed_stops_nothing(
    store: Store, tmp_path: Path, offloaded: Offloaded
) -> None:
    """The files of ledgers that went before are not read again."""
    trim(store, tmp_path)
    first_file(offloaded).unlink()
    fill(store, 30)
    offload(store, "t", Root.of_path(str(tmp_path / "off")))
    assert trim(store, tmp_path).trimmed.ledgers > 0
