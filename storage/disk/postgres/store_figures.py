"""Figures of a store on a server, and the processes that hold the gate or have the store open."""

from __future__ import annotations

from storage.disk.counters import Counters
from storage.disk.environment import HolderProcess, Space
from storage.disk.postgres.binary import as_int, int8
from storage.disk.postgres.client_name import ClientName
from storage.disk.postgres.layout import GATE_HOLDER, STORE_BYTES, STORE_HOLDERS
from storage.disk.postgres.mark_table import read_counters
from storage.disk.postgres.server_figures import server_status
from storage.disk.postgres.server_locks import OpenSession
from storage.disk.postgres.session import Statement
from storage.disk.server_status import ServerStatus
from storage.disk.superblock import Superblock


class StoreFigures:
    """The part of `Environment` that reports read. Each call asks the server."""

    __slots__ = ("_is_replicated", "_lock_number", "_opened_session")

    def __init__(self, opened_session: OpenSession, lock_number: int, *, is_replicated: bool) -> None:
        """Args:
        opened_session: opens the session of views.
        lock_number: the first half of the store's lock keys.
        is_replicated: whether commits of the store wait for a standby.
        """
        self._opened_session = opened_session
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

    def gate_holder(self) -> HolderProcess | None:
        """The process inside the gate, of any host."""
        return next(iter(self._holders(GATE_HOLDER, "held")), None)

    def open_processes(self) -> list[HolderProcess]:
        """The processes that have the store open, of any host, but for this one."""
        return self._holders(STORE_HOLDERS, "open")

    def _holders(self, statement: Statement, state: str) -> list[HolderProcess]:
        with self._opened_session() as session:
            (rows,) = session.run_steps(((statement, (int8(self._lock_number),)),))
        clients = [(ClientName.parse(row[1], row[2]), as_int(row[0])) for row in rows]
        if state == "open":
            clients = [(client, session) for client, session in clients if not client.is_this]
        return [client.holder(session, state) for client, session in clients]
