"""Read-committed reads of tables leave every byte of the store as it was, whoever makes them (invariant 13)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import Store
from storage.limits import FINALIZE_INLINE_MAX
from tests.processes import places
from tests.processes.child import Children

READERS = """
    from storage import CheckMode

    def everything(table, **how):
        table.get(b"k1", **how), table.get(b"missing", **how), table.get_row(b"held", **how)
        for reverse in (False, True):
            list(table.scan(reverse=reverse, **how))
            list(table.scan(prefix=b"k", limit=2, reverse=reverse, **how))

    with Store.open(path, read_only=sys.argv[2] == "read only") as store:
        table = store.table("accounts")
        for check in CheckMode:
            everything(table, check=check)
            with store.transaction(isolation="read-committed", check=check) as txn:
                everything(table, txn=txn)
            abandoned = store.transaction(isolation="read-committed", check=check)
            everything(table, txn=abandoned)
        for detached in sys.argv[3:]:
            everything(table, txn=detached)
        everything(table, at=table.versions(b"k1")[0].version_ns)
        table.stats(), table.versions(b"held"), table.intents(), store.tables(), store.reports.list_conflicts()
        say("read")
        hear()
"""


@pytest.fixture
def prepared(path: str) -> list[str]:
    """Keys whose intents are open, committed and not finalised, and aborted; detached readers of each mode."""
    with Store.open(path) as store:
        store.create_table("accounts")
        table = store.table("accounts")
        table.import_rows((b"k%d" % number, b"v") for number in range(FINALIZE_INLINE_MAX + 1))
        for group, end in (
            (b"", store.commit_transaction),
            (b"gone", store.admin.transactions.abort_transaction),
            (b"held", None),
        ):
            with_intents = store.begin_transaction(timeout=3600)
            for number in range(FINALIZE_INLINE_MAX + 1):
                table.put(group + b"k%d" % number, b"w", txn=with_intents)
            if end is not None:
                end(with_intents)
        assert table.get(b"k1", txn=store.begin_transaction()) == b"w"
        store.begin_transaction(timeout=0.001)
        return [
            str(store.begin_transaction(isolation="read-committed", check=each))
            for each in ("minimal", "full", "none")
        ]


def contents(path: str, how: str) -> dict[str, object]:
    """Every file of the store but the locks: LMDB's own, and ours where it names who came in last to write.

    On a server, the rows of every table.
    """
    if places.is_on_server():
        return dict(places.rows(places.name_of(path)))
    locks = {"lock.mdb"} if how == "read only" else {"lock.mdb", "store.lock"}
    return {name: (Path(path) / name).read_bytes() for name in sorted(set(os.listdir(path)) - locks)}


@pytest.mark.parametrize("how", ["read and write", "read only"])
def test_reading_changes_no_byte_of_any_file(
    path: str, prepared: list[str], children: Children, how: str
) -> None:
    """All kinds of reads in every mode, over intents in every state, by several processes, one of them killed."""
    before = contents(path, how)
    assert ({"kv", "reads"} if places.is_on_server() else {"data.mdb", "reads.cache"}) <= set(before)
    readers = [children.run(READERS, how, *prepared) for _ in range(3)]
    for reader in readers:
        reader.expect("read")
    readers[0].kill()
    for reader in readers[1:]:
        reader.succeed()
    after = contents(path, how)
    assert list(after) == list(before)
    assert [name for name in before if after[name] != before[name]] == []


WRITER = """
    with Store.open(path) as store:
        table = store.table("accounts")
        with store.transaction() as txn:
            say("begun")
            hear()
            table.import_rows(((b"%05d" % number, b"new") for number in range(1000, 2000)), txn=txn)
            if sys.argv[2] == "flush":
                txn.flush()
        say("committed", txn.timestamp)
        hear()
"""


@pytest.fixture
def rows(path: str) -> None:
    """Three pages of rows."""
    with Store.open(path) as store:
        store.create_table("accounts")
        store.table("accounts").import_rows((b"%05d" % number, b"old") for number in range(3000))


@pytest.mark.parametrize("read_only", [True, False])
def test_a_scan_sees_the_commit_of_a_process_that_began_before(
    path: str, rows: None, children: Children, read_only: bool
) -> None:
    """Its pages after the commit show all that they have of it (invariant 14)."""
    writer = children.run(WRITER, "flush")
    writer.expect("begun")
    with Store.open(path, read_only=read_only) as store:
        scan = store.table("accounts").scan()
        seen = [next(scan)]
        writer.say("go on")
        writer.expect("committed")
        seen += scan
    assert [row.value for row in seen[1024:]] == [b"new"] * 976 + [b"old"] * 1000


@pytest.mark.parametrize("end", ["commit", "kill"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_version_has_one_answer_beside_a_process_that_has_begun(
    path: str, rows: None, children: Children, read_only: bool, end: str
) -> None:
    """The process has no record yet. Killed, it holds nobody back, at once."""
    writer = children.run(WRITER, "buffer")
    writer.expect("begun")
    with Store.open(path) as store:
        later = store.table("accounts").put(b"later", b"v")
    with Store.open(path, read_only=read_only) as store:
        table = store.table("accounts")
        final = table.version_at(later)
        assert final.waits_for == 0
        scan = table.scan(at=later)
        seen = [next(scan)]
        if end == "commit":
            writer.say("go on")
            assert final.version == int(writer.expect("committed")) - 1
        else:
            writer.kill()
        seen += scan
        assert [row.value for row in seen] == [b"old"] * 3000
        assert [row.value for row in table.scan(at=final.version)] == [b"old"] * 3000
        assert table.version_at(later).version == later
        changed = [row.value for row in table.scan(at=later)].count(b"new")
        assert changed == (1000 if end == "commit" else 0)
