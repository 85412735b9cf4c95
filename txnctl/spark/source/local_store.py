"""The store as a task opens it: for reading, and only if it is the one that the read was planned on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.errors import StoreInvalid, StoreNotFound

if TYPE_CHECKING:
    from storage import Store


@dataclass(frozen=True)
class LocalStore:
    """Where the store is, and which store and incarnation it must be."""

    path: str
    identity: str

    @classmethod
    def of(cls, store: Store) -> LocalStore:
        """An open store."""
        return cls(store.path, store.identity)

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """The store on this host, for reading.

        Raises:
            StoreNotFound: it is not here: this task runs on another host than the one that has it.
            StoreInvalid: it is another store than when the read was planned.
        """
        from storage import Store

        try:
            store = Store.open(self.path, read_only=True, program="Spark task")
        except StoreNotFound as error:
            raise self._elsewhere() from error
        with store:
            if store.identity != self.identity:
                raise StoreInvalid(
                    f"the store at {self.path} was replaced since the read was planned",
                    hint="Read it anew; a stream needs a new checkpoint.",
                    path=self.path,
                )
            yield store

    def _elsewhere(self) -> StoreNotFound:
        from socket import gethostname

        host = gethostname()
        return StoreNotFound(
            f"there is no store at {self.path} on host {host}",
            hint="Where tasks run on other hosts than the one with the store, give offloadPath to read and stagingPath "
            "to write, on storage that all of them reach.",
            path=self.path,
            host=host,
        )
