"""Findings about the server of a store: standbys, connections, transactions that hold back VACUUM."""

from __future__ import annotations

import re
from collections.abc import Iterator

from storage.actions import Action
from storage.disk.server_status import ServerStatus
from storage.reports.facts import Facts
from storage.reports.finding import Finding, listed, several, some, warning
from storage.values.durations import short_duration

BEHIND_MAX_BYTES = 64 << 20
BEHIND_MAX_MS = 10_000
"""Log that a standby may lack, and its time for the newest log, before the delay is a finding."""

TRANSACTION_LONG_MS = 5 * 60 * 1000
"""The age of a transaction of any client from which dead rows that VACUUM may not remove count."""

CONNECTIONS_HIGH_PERCENT = 90
PROCESS_CONNECTIONS = 2
"""Connections of one process with a store open."""

_COUNT = re.compile(r"\s*(?:FIRST\s+|ANY\s+)?(\d+)\s*\(", re.IGNORECASE)
_STATUS = Action("store.reports.server_status")
_READERS = Action("store.reports.list_readers")


def missing_standbys(server: ServerStatus) -> int | None:
    """How many synchronous standbys a change of the store waits for in vain; None where this role may not see them."""
    if server.durability != "replicated":
        return 0
    if not server.synchronous_standby_names.strip():
        return 1
    if server.synchronous is None:
        return None
    count = _COUNT.match(server.synchronous_standby_names)
    return max(0, (int(count[1]) if count else 1) - len(server.synchronous))


def server_findings(facts: Facts) -> Iterator[Finding]:
    """The findings about the server; none about a store in a directory."""
    server = facts.store.info.server
    if server is not None:
        yield from _unsafe(server)
        yield from _standbys(server)
        yield from _transactions(server)
        yield from _connections(server)


def _unsafe(server: ServerStatus) -> Iterator[Finding]:
    if server.unsafe_settings:
        what = (
            f"the server runs with {listed(server.unsafe_settings)} off, and may lose what it has confirmed"
        )
        why = "Writing is refused. Switch on in postgresql.conf, and restart the server."
        yield Finding("server-unsafe", "critical", "server", what, why, _STATUS)


def _standbys(server: ServerStatus) -> Iterator[Finding]:
    missing, names = missing_standbys(server), server.synchronous_standby_names
    if missing and not names.strip():
        what = "nobody can write: changes are to wait for a synchronous standby, and the server names none"
        why = "Set synchronous_standby_names on the server, and reload its configuration."
        yield Finding("standby-unnamed", "critical", "server", what, why, _STATUS)
    elif missing:
        connected = len(server.synchronous or ())
        present = (
            "none is connected" if not connected else f"{connected} of {connected + missing} are connected"
        )
        what = f"nobody can write: changes wait for a synchronous standby, and {present}"
        why = (
            f"synchronous_standby_names is {names}. Start the standby: a change waits as long as that takes."
        )
        yield Finding("standby-missing", "critical", "server", what, why, _STATUS)
    for standby in server.standbys or ():
        behind_bytes, behind_ms = standby.behind_bytes or 0, standby.behind_ms or 0
        if behind_bytes < BEHIND_MAX_BYTES and behind_ms < BEHIND_MAX_MS:
            continue
        what = f"standby {standby.name} is {behind_bytes >> 20:,} MiB or {short_duration(behind_ms)} behind"
        waits = (
            "Each change waits for it" if standby.is_synchronous else "A failover to it loses what it lacks"
        )
        why = f"{waits}. Look at its disk and at the network between."
        yield warning("standby-behind", f"standby {standby.name}", what, why, _STATUS)


def _transactions(server: ServerStatus) -> Iterator[Finding]:
    long = [held for held in server.transactions if (held.age_ms or 0) >= TRANSACTION_LONG_MS]
    if not long:
        return
    oldest = long[0]
    has = "a transaction has" if len(long) == 1 else f"{several(len(long), 'transaction')} have"
    what = f"{has} kept VACUUM from removing rows for {short_duration(oldest.age_ms or 0)}: "
    what += some([held.holder for held in long])
    end = (
        "ROLLBACK PREPARED ends one that was prepared"
        if oldest.session is None
        else f"SELECT pg_terminate_backend({oldest.session}) ends it, if nobody needs it"
    )
    why = f"Meanwhile the tables grow, of all stores in the database. {end}."
    yield warning("vacuum-held", "server", what, why, _READERS)


def _connections(server: ServerStatus) -> Iterator[Finding]:
    used, most = server.connections, server.connections_max
    if used * 100 < most * CONNECTIONS_HIGH_PERCENT:
        return
    severity = "critical" if most - used < PROCESS_CONNECTIONS else "warning"
    what = f"{used:,} of {most:,} connections of the server are in use"
    why = "A process with the store open needs two. Close some, or raise max_connections and restart the server."
    yield Finding("connections-low", severity, "server", what, why, Action("store.reports.list_locks"))
