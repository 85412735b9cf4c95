"""The record of a store about its server: lock keys, durability, and the servers that kept the store, one by one.

A server is told by its identity (`server_state.py`). Where the identity of the present server is another one than the
record says, a standby was promoted, or the data was copied: the last commits of the server before may be missing.
"""

from __future__ import annotations

from typing import Final

from storage.disk.codec import pack, unpack
from storage.errors import CommitsLost
from storage.values.named_tuple import NamedTuple

SERVER_KEY: Final = b"server"
_FORMER_KEPT: Final = 32

Identity = tuple[int, int]


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
        former: the servers before, the oldest first, as far as they are remembered.
    """

    lock_class: int
    lease_class: int
    is_replicated: bool
    system: int
    timeline: int
    former: tuple[FormerServer, ...] = ()

    @classmethod
    def decode(cls, payload: bytes | memoryview) -> ServerRecord:
        lock_class, lease_class, is_replicated, system, timeline, former = unpack(payload, 6)[:6]
        servers = tuple([FormerServer(*server) for server in former])
        return cls(lock_class, lease_class, is_replicated, system, timeline, servers)

    def encode(self) -> bytes:
        return pack([*self[:5], [list(server) for server in self.former]])

    @property
    def server(self) -> Identity:
        """The identity of the present server, as far as recorded."""
        return self.system, self.timeline

    def moved(self, server: Identity, incarnation: int, last_commit: int) -> ServerRecord:
        """The record of the store on another server.

        Args:
            incarnation, last_commit: the incarnation that ends, and its last commit that the new server has.
        """
        former = (*self.former, FormerServer(*self.server, incarnation, last_commit))[-_FORMER_KEPT:]
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
