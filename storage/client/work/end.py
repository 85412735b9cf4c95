"""One end in the queue of a group: the commit of a transaction, or a send."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from storage.client.append import Appender, ProducerProgress
from storage.disk.view import WriteBatch
from storage.errors import TxnctlError


def _nothing(end: End) -> None:
    """The default of a callback."""


class End(ABC):
    """See the module. A batch may come to nothing, or run again, so `change` only prepares for `mark_durable`.

    Attributes:
        naming: the transaction that the end names, by number; 0 for none.
        size: bytes that the end keeps in the process until it is settled.
        note: called with the end once its outcome is known.
        subject: the transaction, or the receipt of the send, as the application holds it.
        error: why the end was refused; None before, and if it is durable.
    """

    __slots__ = ("error", "naming", "note", "size", "subject")

    def __init__(self, naming: int, size: int) -> None:
        self.naming = naming
        self.size = size
        self.note: Callable[[End], None] = _nothing
        self.subject: object = None
        self.error: TxnctlError | None = None

    @abstractmethod
    def change(self, batch: WriteBatch) -> None:
        """Write the end.

        Raises:
            TxnctlError: refused; nothing of the batch is kept, except after a durable refusal.
        """

    def progress(self) -> Sequence[tuple[Appender, ProducerProgress]]:
        """The progress of each producer, as `change` leaves it."""
        return ()

    def keys(self) -> Sequence[tuple[str, bytes]]:
        """The keys that the end writes, each with the name of its table."""
        return ()

    @abstractmethod
    def mark_durable(self) -> None:
        """The end is durable. May be interrupted, and is repeated then."""

    @abstractmethod
    def refuse(self, error: TxnctlError) -> None:
        """The end is refused, or its outcome is unknown."""

    def is_committed(self) -> bool | None:
        """Whether the batch of the end is found in the store; None if the end cannot tell."""
        return None
