"""The formats stay what docs/FORMAT.md says: golden bytes, and whole small stores.

The store of format 1 was written by the first release; it is read as it is, and after its upgrade like one of format 2.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from pathlib import Path

import lmdb
import msgpack
import pytest

from storage import IsolationLevel, Store
from storage.disk import schema
from storage.subscription import message_set
from storage.table import row as rows
from storage.table.visibility import StoredRow, Version
from storage.topic import entry as entries
from tests.format.small_store import unpacked
from tests.row_json import row_json

HERE = Path(__file__).parent
READ = ("format 1", "format 1 upgraded", "format 2")
WRITTEN = READ[1:]


def opened(tmp_path: Path, kind: str) -> Store:
    """A small store, as if it had been lying there, or upgraded just now."""
    store = Store.open(unpacked(int(kind.split()[1]), tmp_path / "store"))
    if kind.endswith("upgraded"):
        store.maintenance.upgrade_store()
    return store


def test_the_numbers_are_one_and_two() -> None:
    """Another number needs a small store and golden bytes of its own."""
    assert schema.FORMATS_READ == (1, 2)
    assert schema.FORMAT_NUMBER == 2


def test_the_small_store_of_format_1_is_the_one_of_the_first_release() -> None:
    """Made anew it would prove nothing."""
    content = (HERE / "store-1.mdb.gz").read_bytes()
    assert hashlib.sha256(content).hexdigest() == (
        "2b40e1529bbbf94a84173394195d0bad1c48e25b5370b1da1e44a80e43b0ce09"
    )


def test_an_entry_is_laid_out_as_documented() -> None:
    """The header of 58 bytes, big-endian, then the columns; built here by hand."""
    body = msgpack.packb(["p", 7, [b"v"], [b"k"], None, None], use_bin_type=True)
    by_hand = struct.pack(">IBBIQqQQQQ", zlib.crc32(body), 0, 0, 1, 42, -1, 1000, 2000, 3, 4) + body
    assert entries.encode(entries.MESSAGES, 1, 42, -1, 1000, 2000, 3, 4, body) == by_hand
    fields = ["00", "00", "00000001", "000000000000002a", "ffffffffffffffff"]
    fields += ["00000000000003e8", "00000000000007d0", "0000000000000003", "0000000000000004"]
    assert by_hand[4:58].hex() == "".join(fields)
    assert body.hex() == "96a1700791c4017691c4016bc0c0"


def test_a_message_set_is_a_big_endian_integer_and_all_is_nothing() -> None:
    """Bit i stands for message i; no bytes for every message of the entry."""
    assert message_set.encode(0b101, 3) == b"\x05"
    assert message_set.encode(1 << 8, 12) == b"\x01\x00"
    assert message_set.encode(0b111, 3) == b""
    assert message_set.decode(b"", 3) == 0b111


@pytest.mark.parametrize("kind", READ)
def test_a_value_begins_with_the_checksum_of_seed_key_and_payload(tmp_path: Path, kind: str) -> None:
    """Whoever writes another reader can check a record from this page alone."""
    opened(tmp_path, kind).close()
    with lmdb.open(str(tmp_path / "store"), readonly=True, lock=False, max_dbs=64) as raw:
        handle = raw.open_db(b"topics", create=False)
        with raw.begin() as view:
            key = b"persistent://public/default/orders"
            value = view.get(key, db=handle)
    start = zlib.crc32(key, zlib.crc32(b"topics"))
    assert int.from_bytes(value[:4], "big") == zlib.crc32(value[4:], start)
    assert msgpack.unpackb(value[4:])[:1] == [1]


@pytest.mark.parametrize("kind", READ)
def test_every_named_database_of_the_schema_is_in_the_file(tmp_path: Path, kind: str) -> None:
    """The documented table lists what is there, and nothing else is; format 1 lacks the databases new in format 2."""
    opened(tmp_path, kind).close()
    with (
        lmdb.open(str(tmp_path / "store"), readonly=True, lock=False, max_dbs=64) as raw,
        raw.begin() as view,
    ):
        names = {bytes(key).decode() for key in view.cursor().iternext(values=False)}
    documented = {
        line.split("`")[1]
        for line in (HERE.parents[1] / "docs/FORMAT.md").read_text().splitlines()
        if line[:3] == "| `"
    }
    lacked = {database.name for database in schema.NEW_IN_2} if kind == "format 1" else set()
    assert {database.name for database in schema.ALL} == documented
    assert names == documented - lacked


@pytest.mark.parametrize("kind", READ)
def test_this_release_reads_the_store_of_the_first_one(tmp_path: Path, kind: str) -> None:
    """Messages, levels, cursors and the open transaction are what was put in."""
    with opened(tmp_path, kind) as store:
        assert store.maintenance.verify_store() == []
        committed = [(str(m.message_id), m.value) for m in store.reader("orders")]
        assert committed == [
            ("1:0", b"plain"), ("1:1:0", b"a"), ("1:1:1", None), ("1:1:2", b"\xff"), ("1:2", b"committed"),
        ]  # fmt: skip
        everything = store.reader("orders", isolation_level=IsolationLevel.READ_UNCOMMITTED)
        assert [m.value for m in everything][4:] == [b"committed", b"aborted", b"open"]
        keyed = store.reader("orders").read_batch(2)[1]
        assert (keyed.key, keyed.properties, keyed.event_time, keyed.sequence_id) == (b"k", {"p": "q"}, 5, 8)
        stats = row_json(store.reports.topic_stats("orders"))
        assert (stats["maxReadPosition"], stats["ongoingTxnCount"], stats["abortedTxnCount"]) == ("1:3", 1, 1)
        (second,) = row_json(store.reports.list_producers("accounts"))
        assert (second["producerName"], second["epoch"], second["leaseMs"]) == ("second", 1, 3_600_000)
        assert [row["producerName"] for row in row_json(store.reports.ownership_history("accounts"))] == [
            "second",
            "first",
        ]
        (left,) = row_json(store.reports.list_producers("left"))
        assert (left["producerName"], left["accessMode"], left["epoch"]) == ("dead", "WaitForExclusive", 0)
        assert left["state"] == "rebooted"
        e, d = stats["subscriptions"]["E"], stats["subscriptions"]["D"]
        assert (e["markDeletePosition"], e["visible"], e["uncommitted"], e["blocked"]) == ("1:0", 4, 1, 0)
        assert (d["subscriptionIsolationLevel"], d["pending"], d["visible"]) == ("READ_UNCOMMITTED", 1, 5)


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_store_of_the_first_release_can_be_written(tmp_path: Path, kind: str) -> None:
    """Its open transaction ends, and what was pending in it is acknowledged."""
    with opened(tmp_path, kind) as store:
        row = next(each for each in row_json(store.reports.list_transactions()) if each["labels"])
        assert row["labels"] == {"job": "x"}
        store.commit_transaction(row["txnId"])
        assert [m.value for m in store.reader("orders")][-1] == b"open"
        assert (
            store.create_producer("orders", producer_name="loader").send(b"again", sequence_id=7).entry_id
            == -1
        )
        assert store.maintenance.verify_store() == []


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_the_first_release_passed_over_is_delivered(tmp_path: Path, kind: str) -> None:
    """A subscription that skips what is open holds a message for its key, and has it when the transaction ends."""
    with opened(tmp_path, kind) as store:
        mine = row_json(store.reports.subscription_stats("parcels", "K"))
        (holder,) = mine["heldBy"]
        assert (mine["onOpen"], mine["blocked"], mine["visible"], holder["blocked"]) == ("skip", 1, 0, 1)
        store.commit_transaction(holder["txnId"])
        with store.subscribe("parcels", "K") as consumer:
            assert consumer.receive_batch(9, timeout=0).values == [b"open", b"waits"]
        assert store.maintenance.verify_store(full=True) == []


@pytest.mark.parametrize("kind", READ)
def test_the_table_of_the_first_release_is_read(tmp_path: Path, kind: str) -> None:
    """Versions, a deletion, an intent in progress and the conflict it won are what was put in."""
    with opened(tmp_path, kind) as store:
        assert store.tables() == ["accounts"]
        accounts = store.table("accounts")
        assert [(row.key, row.value) for row in accounts.scan()] == [(b"B1", b"90")]
        assert [row.value for row in accounts.versions(b"B1")] == [b"90", b"100"]
        assert [each["deleted"] for each in row_json(accounts.versions(b"B2"))] == [True]
        ((key, state),) = [(row.key, row.owner.state.value) for row in accounts.intents()]
        assert (key, state) == (b"B3", "OPEN")
        ((conflict, winner, loser),) = [
            (each["kind"], each["winner"], each["loser"]) for each in row_json(store.reports.list_conflicts())
        ]
        # Format 1 kept no changes, and the upgrade begins with none.
        assert (accounts.changes().since == 0) == (kind == "format 2")
        found = "held" if kind == "format 2" else "push"
        assert (conflict, winner, loser) == (found, "0:7", "0:8")


def test_a_row_is_laid_out_as_documented() -> None:
    """Flags, the finalised version, then the intent; built here by hand."""
    row = StoredRow(Version(7, 3, b"ab"), Version(9, 4, None))
    by_hand = struct.pack(">BQQI", 1 | 4 | 8, 7, 3, 2) + b"ab" + struct.pack(">QQ", 9, 4)
    assert rows.encode(row) == by_hand
    assert rows.encode(StoredRow(Version(7, 3, None), None)) == struct.pack(">BQQI", 1 | 2, 7, 3, 0)
    assert rows.encode(StoredRow(None, Version(9, 4, b"x"))) == b"\x04" + struct.pack(">QQ", 9, 4) + b"x"
    assert rows.encode_old(Version(7, 3, b"ab")) == struct.pack(">BQ", 0, 3) + b"ab"


def test_a_key_of_a_version_is_grouped_by_eight() -> None:
    """A group that another follows ends in 9, the last one in how many of its bytes are key."""
    assert rows.grouped(b"abc").hex() == "616263000000000003"
    assert rows.grouped(b"abcdefgh").hex() == "616263646566676809" + "000000000000000000"
    assert rows.old_key(1, b"a", 2).hex() == "0000000000000001" + "610000000000000001" + "fffffffffffffffd"
