"""The state of a server on which the promises of a store rest: its settings, its role, and its identity.

The identity is the system identifier, which `initdb` draws, the timeline, which a promotion raises, and the place
there: database and schema. A copy of a database, or a dump that is loaded into another one, is another store.
"""

from __future__ import annotations

from typing import Final

from storage.actions import Action, Hint, Keyword
from storage.disk.postgres.binary import as_bool, as_int
from storage.disk.postgres.session import Session, Statement
from storage.disk.postgres.url import COPY_SUFFIX
from storage.errors import ServerUnreachable, StoreUnsafe
from storage.values.named_tuple import NamedTuple

STATE: Final[Statement] = (
    b"state",
    (
        b"SELECT current_setting('fsync')::bool, current_setting('full_page_writes')::bool, pg_is_in_recovery(),"
        b" current_setting('synchronous_commit') IN ('on', 'remote_apply'),"
        b" current_setting('synchronous_standby_names') <> '',"
        b" (SELECT system_identifier FROM pg_control_system()),"
        b" CASE WHEN pg_is_in_recovery() THEN 0"
        b" ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8 END,"
        b" (SELECT oid FROM pg_database WHERE datname = current_database()) || '/'"
        b" || btrim(current_setting('search_path'), '\"')"
    ),
)


class Identity(NamedTuple):
    """The identity of a server and of the place of a store there."""

    system: int
    timeline: int
    place: str


class ServerState(NamedTuple):
    """See the module.

    Attributes:
        is_standby: whether the server is in recovery.
        waits: whether a commit of the session waits for the disk.
        has_standby: whether a commit waits for a synchronous standby.
        timeline: 0 on a standby.
        place: number of the database, and name of the schema.
    """

    fsync: bool
    full_page_writes: bool
    is_standby: bool
    waits: bool
    has_standby: bool
    system: int
    timeline: int
    place: str

    @classmethod
    def read(cls, session: Session) -> ServerState:
        """Ask the server of a session."""
        ((row,),) = session.run_steps(((STATE, ()),))
        fsync, full_page_writes, is_standby, waits, has_standby = map(as_bool, row[:5])
        system, timeline = as_int(row[5]), as_int(row[6])
        # An unfinished copy lies in a schema of its own, which becomes the store's.
        place = (row[7] or b"").decode().removesuffix(COPY_SUFFIX)
        return cls(fsync, full_page_writes, is_standby, waits, has_standby, system, timeline, place)

    @property
    def identity(self) -> Identity:
        """System identifier, timeline and place."""
        return Identity(self.system, self.timeline, self.place)

    def check_primary(self, shown: str) -> None:
        """Refuse a standby, which has neither the marks nor the read cache of the store.

        Raises:
            ServerUnreachable
        """
        if self.is_standby:
            raise ServerUnreachable(
                f"the server of {shown} is a standby",
                hint="Name the primary, or all hosts of the cluster in the URL.",
            )

    def check_writable(self, shown: str, *, is_replicated: bool) -> None:
        """Refuse a server that would not keep what it confirms.

        Args:
            is_replicated: whether the commits of the store wait for a standby.

        Raises:
            StoreUnsafe
        """
        settings = {"fsync": self.fsync, "full_page_writes": self.full_page_writes}
        off = [name for name, is_on in settings.items() if not is_on]
        if off:
            raise StoreUnsafe(
                f"the server of {shown} runs with {' and '.join(off)} off, and may lose what it has confirmed",
                hint="Switch it on in postgresql.conf, and restart the server.",
            )
        if not self.waits:
            raise StoreUnsafe(
                f"the server of {shown} confirms commits before they are stored (synchronous_commit)",
                hint="Connect to the server itself, with a role that may set synchronous_commit.",
            )
        if is_replicated and not self.has_standby:
            raise StoreUnsafe(
                f"the changes of {shown} are to wait for a synchronous standby, and the server names none",
                hint=Hint(
                    "Set synchronous_standby_names on the server, and reload its configuration; or go on without a"
                    " standby in a copy: `{}`.",
                    Action("Store.copy", shown, f"{shown}_local", durability="local"),
                ),
            )

    def chosen_durability(self, shown: str, asked: bool | None) -> bool:
        """Whether the commits of a new store are to wait for a standby.

        Args:
            asked: the choice of the caller; None chooses the standby, and none is refused.

        Raises:
            StoreUnsafe
        """
        if asked is None and not self.has_standby:
            raise StoreUnsafe(
                f"the server of {shown} has no synchronous standby: the loss of its machine would lose messages",
                hint=Hint(
                    "Set synchronous_standby_names on the server, or accept the loss with {}.",
                    Keyword("durability", "local"),
                ),
            )
        return self.has_standby if asked is None else asked
