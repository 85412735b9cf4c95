"""The server of a store as it runs now, for reports; an engine without a server has none."""

from __future__ import annotations

from storage.values.named_tuple import NamedTuple


class Standby(NamedTuple):
    """A standby that is connected to the server.

    Attributes:
        state: `streaming` or `catchup`.
        sync_state: `sync` or `quorum` where commits wait for the standby; `potential` or `async` for further standbys.
        behind_bytes: log that the standby has not stored yet.
        behind_ms: how long the standby took to store its last log; None while nothing is written.
    """

    name: str
    host: str | None
    state: str | None
    sync_state: str | None
    behind_bytes: int | None
    behind_ms: int | None

    @property
    def is_synchronous(self) -> bool:
        """Whether commits wait for the standby."""
        return self.sync_state in ("sync", "quorum")


class ServerTransaction(NamedTuple):
    """A transaction of any client in the database: its snapshot keeps VACUUM from removing dead rows.

    Attributes:
        session: the process of the server; None for a prepared transaction.
        pid, host, program: of the client, as far as the session tells.
        state: `active`, `idle in transaction`, `prepared`; None where this role may not see the state.
        age_ms: since the begin; None where this role may not see the begin.
        holder: the client in words.
    """

    session: int | None
    pid: int | None
    host: str | None
    program: str | None
    user: str | None
    state: str | None
    age_ms: int | None
    holder: str


class ServerStatus(NamedTuple):
    """See the module.

    Attributes:
        durability: `replicated` where commits of the store wait for a synchronous standby, else `local`.
        standbys: None where this role may see none.
        unsafe_settings: settings that are off, so that the server may lose confirmed commits.
        connections, connections_max: of all databases of the server, without connections reserved for superusers.
        transactions: transactions that hold back VACUUM at this moment, the oldest first.
    """

    version: str
    started_at_ms: int
    durability: str
    synchronous_standby_names: str
    standbys: list[Standby] | None
    unsafe_settings: list[str]
    connections: int
    connections_max: int
    transactions: list[ServerTransaction]

    @property
    def synchronous(self) -> list[Standby] | None:
        """The standbys that commits wait for; None where this role may see none."""
        return (
            None
            if self.standbys is None
            else [standby for standby in self.standbys if standby.is_synchronous]
        )
