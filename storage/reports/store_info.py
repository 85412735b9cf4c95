"""Looking at the store itself: what it is, who holds it, where its space goes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from storage.disk.codec import unpack
from storage.disk.connection import Connection
from storage.disk.directory import DATA
from storage.disk.schema import FORMAT_NUMBER, LEASES, STORE, TXN_DEADLINES, TXNS
from storage.disk.superblock import ReapPolicy
from storage.disk.view import ReadView
from storage.limits import READERS_MAX
from storage.process.identity import ProcessIdentity, describe, is_stopped, started
from storage.process.locks import FILE_NAME, processes_with
from storage.table import catalogue as tables
from storage.topic import catalogue as topics
from storage.values.timestamps import both


def info(connection: Connection) -> dict[str, Any]:
    """What the store is: format, identity, sizes, counts."""
    in_use = sum(1 for _ in _slots(connection))
    with connection.view() as view:
        return info_in(view, connection, in_use)


def info_in(view: ReadView, connection: Connection, readers_in_use: int) -> dict[str, Any]:
    """The same, as a view shows it.

    Args:
        readers_in_use: before the view was opened: LMDB itself counts how many places were ever taken at once.
    """
    figures = connection.environment.info()
    payload = view.get(STORE, b"format")
    assert payload is not None, "an open store has a format record"
    _, store_id, created_ms = unpack(payload)[:3]
    head = view.superblock
    return {
        "path": connection.path, "format": FORMAT_NUMBER, "storeId": store_id.hex(),
        **both("created", created_ms), "incarnation": head.incarnation, "commits": head.commits,
        "topics": sum(1 for _ in topics.every(view)), "tables": sum(1 for _ in tables.every(view)),
        "openTransactions": view.count(TXN_DEADLINES),
        "transactions": view.count(TXNS), "lastTimestamp": str(head.last_timestamp),
        "reapPolicy": ReapPolicy(head.reap_policy).name.lower(), "tableRetentionMs": head.table_retention_ms,
        "dataBytes": os.stat(os.path.join(connection.path, DATA)).st_size,
        "usedBytes": (figures["last_pgno"] + 1) * figures["psize"], "mapBytes": figures["map_size"],
        "readersInUse": readers_in_use, "readersMax": READERS_MAX,
    }  # fmt: skip


def gate(connection: Connection) -> dict[str, Any] | None:
    """Who is in the writer gate at this moment: pid, holder in words, `held` or `stopped`; None if it is free."""
    connection.environment.check_usable()
    lock_file = connection.environment.lock_file
    if not lock_file.gate.is_held():
        return None
    signature = lock_file.gate.signature() or (0, 0)
    return {
        "pid": signature[0] or None, "holder": describe(*signature),
        "state": "stopped" if is_stopped(*signature) else "held",
    }  # fmt: skip


def disk(connection: Connection) -> dict[str, Any]:
    """What the file system of the store has left for its user, and what it holds in all."""
    found = os.statvfs(connection.path)
    return {"diskFreeBytes": found.f_bavail * found.f_frsize, "diskBytes": found.f_blocks * found.f_frsize}


def identity(connection: Connection) -> str:
    """Which store it is, and which incarnation of it: positions and ids of another mean nothing here."""
    with connection.view() as view:
        payload = view.get(STORE, b"format")
        assert payload is not None, "an open store has a format record"
        return f"{unpack(payload)[1].hex()}-{view.superblock.incarnation}"


def locks(connection: Connection) -> list[dict[str, Any]]:
    """Who holds the writer gate, leases, and the store open."""
    rows: list[dict[str, Any]] = []
    writing = gate(connection)
    if writing is not None:
        rows.append({"lock": "writer gate", **writing})
    lock_file = connection.environment.lock_file
    with connection.view() as view:
        for key, payload in view.scan(LEASES):
            owner = ProcessIdentity.of(unpack(payload))
            lease = int.from_bytes(key, "big")
            state = lock_file.leases.state_of(lease, owner, view.clock.boot_id())
            rows.append({"lock": f"lease {lease}", "pid": owner.pid, "holder": str(owner), "state": state})
    for pid in processes_with(os.path.join(connection.path, FILE_NAME)):
        state = "stopped" if is_stopped(pid, started(pid)) else "open"
        rows.append({"lock": "store", "pid": pid, "holder": describe(pid, started(pid)), "state": state})
    return rows


def readers(connection: Connection) -> list[dict[str, Any]]:
    """LMDB's reader table: who reads, and how far behind the last commit; an old reader keeps pages from reuse."""
    last = connection.environment.last_commit()
    return [
        {
            "pid": pid, "holder": describe(pid, started(pid)), "commit": seen,
            "behind": last - seen if seen is not None else None,
            "state": "stopped" if is_stopped(pid, started(pid)) else "reading" if seen is not None else "idle",
        }
        for pid, seen in _slots(connection)
    ]  # fmt: skip


def _slots(connection: Connection) -> Iterator[tuple[int, int | None]]:
    """The places of LMDB's reader table that are taken: the process, and the commit that its view shows."""
    for line in connection.environment.readers().splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[0].isdigit():
            yield int(fields[0]), int(fields[2]) if fields[2].isdigit() else None


def space(connection: Connection) -> list[dict[str, Any]]:
    """Where the space goes, by database: entries and bytes of pages."""
    with connection.view() as view:
        return space_in(view)


def space_in(view: ReadView) -> list[dict[str, Any]]:
    """The same, as a view shows it."""
    return [
        {
            "database": name, "entries": each["entries"],
            "bytes": each["psize"] * (each["branch_pages"] + each["leaf_pages"] + each["overflow_pages"]),
            "depth": each["depth"],
        }
        for name, each in view.database_stats().items()
    ]  # fmt: skip
