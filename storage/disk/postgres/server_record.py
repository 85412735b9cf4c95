"""The record of a store about its server: lock keys, durability, and the servers that kept the store, one by one.

A server is told by its identity (`server_state.py`). Where the identity of the present server is another one than the
record says, a standby was promoted, or the data was copied: the last commits of the server before may be missing.
"""

from __future__ import annotations

from typing import Final

from storage.actions import Action, Hint, Keyword
from storage.disk.codec import decoded, pack, unpack, unseal
from storage.disk.postgres.binary import as_bool
from storage.disk.postgres.layout import RecordPlace
from storage.disk.postgres.server_errors import NO_RIGHTS, refused
from storage.disk.postgres.server_state import Identity
from storage.disk.postgres.session import Session, Statement
from storage.disk.schema import FORMAT_KEY, FORMAT_NUMBER, SERVER_KEY, STORE
from storage.errors import CommitsLost, NotAStore, StoreNotFound, TxnctlError, UnknownFormat
from storage.values.named_tuple import NamedTuple

_FORMER_KEPT: Final = 32


class SeenCommit(NamedTuple):
    """The highest commit that this process has seen in a store, and the incarnation of the store then."""

    incarnation: int
    number: int


class FormerServer(NamedTuple):
    """An earlier server, the incarnation that ended there, and its last commit that the next server has."""

    system: int
    timeline: int
    incarnation: int
    last_commit: int


class ServerRecord(NamedTuple):
    """See the module.

    Attributes:
        is_replicated: whether each commit waits for a synchronous standby.
        place: empty in a record that an early build has written.
        former: the servers before, the oldest first, as far as they are remembered.
    """

    lock_class: int
    lease_class: int
    is_replicated: bool
    system: int
    timeline: int
    place: str = ""
    former: tuple[FormerServer, ...] = ()

    @classmethod
    def decode(cls, payload: bytes | memoryview) -> ServerRecord:
        lock_class, lease_class, is_replicated, system, timeline, former, *later = unpack(payload, 6)
        servers = tuple([FormerServer(*server) for server in former])
        return cls(
            lock_class, lease_class, is_replicated, system, timeline, later[0] if later else "", servers
        )

    def encode(self) -> bytes:
        return pack([*self[:5], [list(server) for server in self.former], self.place])

    @property
    def server(self) -> Identity:
        """The identity of the present server, as far as recorded."""
        return Identity(self.system, self.timeline, self.place)

    def moved(self, server: Identity, incarnation: int, last_commit: int) -> ServerRecord:
        """The record of the store on another server.

        Args:
            incarnation, last_commit: the incarnation that ends, and its last commit that the new server has.
        """
        former = (*self.former, FormerServer(self.system, self.timeline, incarnation, last_commit))[
            -_FORMER_KEPT:
        ]
        return ServerRecord(self.lock_class, self.lease_class, self.is_replicated, *server, former)

    def kept_of(self, seen: SeenCommit, now: SeenCommit) -> int | None:
        """The last commit that is left of an incarnation, if a commit that was seen then is lost; None if none is.

        Args:
            now: the present incarnation, and its last commit.
        """
        kept = next((one.last_commit for one in self.former if one.incarnation == seen.incarnation), None)
        if kept is None and seen.incarnation == now.incarnation:
            kept = now.number
        return kept if kept is not None and kept < seen.number else None


HAS_TABLES: Final[Statement] = (
    b"has_tables",
    (
        b"SELECT to_regclass('commits') IS NOT NULL,"
        b" (SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1::text)"
    ),
)
"""Whether the schema of the search path has the tables of a store, and whether this role may use it."""


def read_record(session: Session, shown: str, schema: str) -> ServerRecord:
    """The record of the store in a schema, which is seen to be a whole store of this format.

    Args:
        shown: the URL of the store without a password.

    Raises:
        StoreNotFound, NotPermitted, NotAStore, UnknownFormat
    """
    ((row,),) = session.run_steps(((HAS_TABLES, (schema.encode(),)),))
    if not as_bool(row[0]):
        raise _no_tables(shown, schema, None if row[1] is None else as_bool(row[1]))
    server, form = _record(session, SERVER_KEY), _record(session, FORMAT_KEY)
    if form is None or server is None:
        raise NotAStore(f"{shown} is not a whole store: it was never finished")
    number = unpack(form, 1)[0]
    if number != FORMAT_NUMBER:
        raise UnknownFormat(
            f"{shown} has format {number}; this release knows format {FORMAT_NUMBER} on a server",
            hint="Use the release that wrote the store, which was left untouched.",
            format=number,
        )
    return decoded(STORE, SERVER_KEY, server, ServerRecord.decode)


def _no_tables(shown: str, schema: str, may_use: bool | None) -> TxnctlError:
    """The error for a schema without tables of a store.

    Args:
        may_use: whether this role may use the schema; None for a schema that is missing.
    """
    if may_use is None:
        return StoreNotFound(
            f"there is no store at {shown}",
            hint=Hint(
                "Create one with `{}`, or name another with {}.", Action("Store.create"), Keyword("path")
            ),
        )
    if not may_use:
        return refused(shown, NO_RIGHTS, f"permission denied for schema {schema}")
    return NotAStore(f"the schema of {shown} has no tables of a store")


def _record(session: Session, key: bytes) -> memoryview | None:
    place = RecordPlace(STORE)
    (rows,) = session.run_steps(((place.get, (place.prefix + key,)),))
    return None if not rows or rows[0][0] is None else unseal(STORE, key, rows[0][0])


StoreKey = tuple[str, bytes]
"""Name and id of a store: a store that was made anew under the name is another one."""

_seen: dict[StoreKey, SeenCommit] = {}


def note_seen(store: StoreKey, seen: SeenCommit) -> None:
    """Note for later handles of this process the highest commit that a handle has seen."""
    _seen[store] = max(seen, _seen.get(store, seen))


def seen_of(store: StoreKey) -> SeenCommit | None:
    """The highest commit that earlier handles of this process have seen."""
    return _seen.get(store)


def commits_lost(shown: str, seen: SeenCommit, kept: int) -> CommitsLost:
    """The error for commits that this process has seen, and that the server does not have."""
    return CommitsLost(
        f"the server of {shown} has lost commits: this process has seen commit {seen.number}, and the server that"
        f" goes on has the commits up to {kept}",
        hint="Open the store again to go on without them; send again what was stored last.",
        seenCommit=seen.number,
        lastCommit=kept,
    )


def forget_seen(store: StoreKey) -> SeenCommit | None:
    """Forget what earlier handles have seen, because the caller is told that it is lost; return it."""
    return _seen.pop(store, None)
