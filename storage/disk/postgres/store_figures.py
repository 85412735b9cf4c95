"""Figures of a store on a server, and the processes that hold the gate or have the store open."""

from __future__ import annotations

from storage.disk.counters import Counters
from storage.disk.environment import HolderProcess, Space
from storage.disk.postgres.binary import as_int, as_int_or_none, as_text, int8
from storage.disk.postgres.client_name import ClientName
from storage.disk.postgres.layout import GATE_HOLDER, STORE_BYTES, STORE_HOLDERS
from storage.disk.postgres.mark_table import read_counters
from storage.disk.postgres.server_figures import server_status
from storage.disk.postgres.server_locks import OpenSession
from storage.disk.postgres.session import Row, Statement
from storage.disk.server_status import ServerStatus
from storage.disk.superblock import Superblock
from storage.process.clock import Clock

_PAUSE_S = 0.05
"""Between two looks at a held gate."""


class StoreFigures:
    """The part of `Environment` that reports read. Each call asks the server."""

    __slots__ = ("_clock", "_is_replicated", "_lock_number", "_opened_session")

    def __init__(
        self, opened_session: OpenSession, lock_number: int, clock: Clock, *, is_replicated: bool
    ) -> None:
        """Args:
        opened_session: opens the session of views.
        lock_number: the first half of the store's lock keys.
        is_replicated: whether commits of the store wait for a standby.
        """
        self._opened_session = opened_session
        self._clock = clock
        self._lock_number = lock_number
        self._is_replicated = is_replicated

    def space(self) -> Space:
        """The bytes of the tables; a server has no pages of ours."""
        with self._opened_session() as session:
            ((row,),) = session.run_steps(((STORE_BYTES, ()),))
        return Space(as_int(row[0]), None, None, None, None)

    def counters(self, superblock: Superblock) -> Counters:  # noqa: ARG002
        """Events of all processes, counted in a table that a crash empties."""
        with self._opened_session() as session:
            return read_counters(session)

    def server_status(self) -> ServerStatus:
        """The server as it runs now."""
        with self._opened_session() as session:
            return server_status(session, is_replicated=self._is_replicated)

    def gate_holder(self, *, watched: bool = False) -> HolderProcess | None:
        """The process inside the gate, of any host.

        How long a busy session has held the gate is known to nobody: its statement may have waited for the gate. So the
        one transaction is watched, which every role may see.
        """
        first, began_ns = self._look(), self._clock.boot_ns()
        seen, held = first
        while watched and held is not None and not held.stops_writers:
            self._clock.sleep(_PAUSE_S)
            watched_ms = (self._clock.boot_ns() - began_ns) // 1_000_000
            seen, held = self._look()
            if seen != first[0]:
                break
            if held is not None:
                held = held._replace(held_ms=max(held.held_ms or 0, watched_ms))
        return held

    def _look(self) -> tuple[tuple[int, bytes | None] | None, HolderProcess | None]:
        """Session and transaction that hold the gate, and their process."""
        for row in self._rows(GATE_HOLDER):
            return (as_int(row[0]), row[6]), _holder(row, "held")._replace(held_ms=as_int_or_none(row[5]))
        return None, None

    def open_processes(self) -> list[HolderProcess]:
        """The processes that have the store open, of any host, but for this one."""
        return [
            held for held in (_holder(row, "open") for row in self._rows(STORE_HOLDERS)) if not held.is_this
        ]

    def _rows(self, statement: Statement) -> list[Row]:
        with self._opened_session() as session:
            return session.run_steps(((statement, (int8(self._lock_number),)),))[0]


def _holder(row: Row, state: str) -> HolderProcess:
    holder = ClientName.parse(row[1], row[2]).holder(as_int(row[0]), state, as_text(row[3]))
    return holder._replace(address=as_text(row[2]), activity=as_text(row[4]))
