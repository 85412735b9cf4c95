"""The store that a task opens read-only, checked against the identity recorded in the plan.

A store in a directory is opened on the host of the driver alone; one on a server on every host. A task has two
connections to the server while it reads, and no snapshot between two pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.errors import ProgramMissing, StoreInvalid
from txnctl.spark.runtime.task_host import lacks_package, lacks_store

if TYPE_CHECKING:
    from storage import Store


@dataclass(frozen=True)
class LocalStore:
    """The path or URL of a store, and its identity (store id and incarnation) when the read was planned."""

    path: str
    identity: str

    @classmethod
    def of_open_store(cls, store: Store) -> LocalStore:
        """Return the location of an open store."""
        return cls(store.path, store.identity)

    @contextmanager
    def open_read_only(self) -> Iterator[Store]:
        """Open the store on this host read-only.

        Raises:
            StoreNotFound: the task runs on a different host than the store.
            ServerUnreachable, NotPermitted: the host of the task does not reach the server, or is not admitted.
            StoreInvalid: the store was replaced since the read was planned, or cannot be opened on this host.
            ProgramMissing: lmdb, or psycopg, is not installed on this host.
        """
        try:
            from storage import Store

            store = Store.open(self.path, read_only=True, program="Spark task")
        except ImportError as error:
            raise lacks_package(error, self.path) from error
        except ProgramMissing as error:
            # The driver of a server; the error of the task names its host too.
            raise lacks_package(ImportError(name="psycopg"), self.path) from error
        except StoreInvalid as error:
            raise lacks_store(error, self.path) from error
        with store:
            if store.identity != self.identity:
                raise StoreInvalid(
                    f"the store at {self.path} was replaced since the read was planned",
                    hint="Run the read again; a stream needs a new checkpoint.",
                    path=self.path,
                )
            yield store
