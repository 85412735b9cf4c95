"""The server of a store in words, for `store info`, `status`, `top` and the report."""

from __future__ import annotations

from txnctl.output.human import duration, plural, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.disk.server_status import ServerStatus, Standby
    from storage.reports.facts import Facts, ReaderFacts
    from storage.reports.store_info import StoreInfo

SERVER = (
    "The server of a store on a server, else null: version, startedAt, durability (local, replicated), "
    "synchronousStandbyNames, standbys (name, host, state, syncState, behindBytes, behindMs; null where this role may "
    "not see them), unsafeSettings, connections, connectionsMax, transactions (those that VACUUM waits for)."
)


def server_facts(info: StoreInfo, server: ServerStatus, as_of_ms: int) -> Iterator[tuple[str, str]]:
    """Name and text of each part: the tables, the server, the standbys, the connections."""
    yield "space", f"{size(info.data_bytes)} in tables; the disk is the server's"
    up = duration(max(0, as_of_ms - server.started_at_ms))
    yield "server", f"PostgreSQL {server.version}, up {up}"
    yield "durability", durability_text(server)
    yield "connections", f"{server.connections:,} of {server.connections_max:,} in use"


def durability_text(server: ServerStatus) -> str:
    """`replicated: waits for s1; s1 sync, 0 B behind`."""
    if server.durability == "replicated":
        text = f"replicated: each change waits for {server.synchronous_standby_names or 'a standby, and none is named'}"
    else:
        text = "local: the loss of the server's disk loses messages"
    if server.standbys is None:
        return f"{text}; this role may not see the standbys"
    standbys = ", ".join([_standby(standby) for standby in server.standbys])
    return f"{text}; {standbys or 'no standby is connected'}"


def _standby(standby: Standby) -> str:
    return f"{standby.name} {standby.sync_state or standby.state}, {size(standby.behind_bytes)} behind"


def writing_text(facts: Facts) -> str:
    """The process in the writer gate."""
    gate = facts.writer_gate
    return "nobody at this moment" if gate is None else f"{gate.holder} ({gate.state})"


def readers_text(readers: ReaderFacts) -> str:
    """`3 of 512 places taken; the oldest view is 2 commits old`; on a server the open transactions."""
    oldest = readers.oldest
    if readers.in_use is None or readers.max is None:
        text = f"{plural(readers.reading, 'transaction')} open in the database"
        return text if oldest is None else f"{text}, the oldest for {duration(oldest.age_ms)}"
    behind = None if oldest is None else oldest.behind
    age = "" if behind is None else f"; the oldest view is {plural(behind, 'commit')} old"
    return f"{readers.in_use:,} of {readers.max:,} places taken{age}"
