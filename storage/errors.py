"""The errors of the engine and the command line, in one tree.

    TxnctlError
    ├── BadInput (2)          InvalidName · InvalidPosition · InvalidValue · InvalidTxnId · MessageTooLarge · BadLine
    ├── NotFound (3)          TopicNotFound · SubscriptionNotFound · TransactionNotFound · MessageNotFound
    │                         ConsumerNotFound · SessionNotFound · TableNotFound · KeyNotFound
    ├── Conflict (4)          AlreadyExists · SubscriptionBusy · TransactionConflict · TransactionNotOpen
    │                         TransactionTimedOut · TransactionChanged · SequenceConflict · NotDeliverable
    │                         ConsumerEvicted · ProducerBusy · ProducerFenced · ObjectHeld · NestedTransaction
    │                         LostConflict · WriteTooOld · RequestTooOld · ConditionFailed · ReadOnlyTransaction
    │                         TopicFull
    ├── Busy (5)              WriterBusy · StoreInUse · ReadersFull
    ├── StoreInvalid (6)      StoreNotFound · NotAStore · UnknownFormat · CorruptStore · StoreFull · StoreUnsafe
    │                         NotPermitted · StoreClosed · PlatformUnsupported · OffloadInvalid · TooManyFiles
    │                         OldFormat · ServerLost · ServerUnreachable · CommitsLost
    ├── WaitTimeout (7)
    ├── Refused (9)           NeedsConfirmation · OwnerAlive
    ├── GroupRefused (4)
    ├── OutcomeUnknown (10)
    ├── ProgramMissing (11)
    └── JobFailed (12)        ClusterUnreachable · JvmDied

A class exists only where a caller would act differently. The message is for people; `code`, `exit_code`,
`retryable` and `details` are the interface. Numbers in brackets are exit codes; `txnctl/cli/exit_codes.py` lists all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TxnctlError(Exception):
    """Any error that txnctl reports on purpose. The hint is text, and often a `storage.actions.Hint`."""

    code = "error"
    exit_code = 1
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class BadInput(TxnctlError):
    """A value of the caller is unusable: a name, a position, a size, a line. Nothing was changed."""

    code = "bad-input"
    exit_code = 2


class InvalidName(BadInput):
    """A topic, subscription, producer or consumer name breaks the naming rule of its kind."""

    code = "invalid-name"


class InvalidPosition(BadInput):
    """A position is not `earliest`, `latest`, `L:E` or `L:E:B`."""

    code = "invalid-position"


class InvalidValue(BadInput):
    """A value has the wrong type, is out of bounds, or is not accepted by the option."""

    code = "invalid-value"


class InvalidTxnId(BadInput):
    """A transaction id is not `0:42`, `(0,42)` or `42`."""

    code = "invalid-transaction-id"


class MessageTooLarge(BadInput):
    """A message is larger than the store accepts (5 MiB of value, key and properties)."""

    code = "message-too-large"


class BadLine(BadInput):
    """A line of the input cannot be read; the message names the line and the fault."""

    code = "bad-line"


class NotFound(TxnctlError):
    """The named object does not exist."""

    code = "not-found"
    exit_code = 3


class TopicNotFound(NotFound):
    """The store has no topic of that name."""

    code = "topic-not-found"


class SubscriptionNotFound(NotFound):
    """The topic has no subscription of that name."""

    code = "subscription-not-found"


class TransactionNotFound(NotFound):
    """The store never began a transaction of that id, or no longer keeps its outcome."""

    code = "transaction-not-found"


class MessageNotFound(NotFound):
    """The position has no message: never written, trimmed away, or a transaction marker."""

    code = "message-not-found"


class ConsumerNotFound(NotFound):
    """The subscription has no attached consumer of that name."""

    code = "consumer-not-found"


class SessionNotFound(NotFound):
    """The session has no producer: it was closed, or never opened in this store."""

    code = "session-not-found"


class TableNotFound(NotFound):
    """The store has no table of that name."""

    code = "table-not-found"


class KeyNotFound(NotFound):
    """The table has no value under that key."""

    code = "key-not-found"


class Conflict(TxnctlError):
    """The state of the store does not allow the request, and an unchanged retry will not help."""

    code = "conflict"
    exit_code = 4

    def __init__(
        self, message: str, *, hint: str | None = None, held_by: Sequence[int] = (), **details: Any
    ) -> None:
        """Args:
        held_by: the open transactions over which the request is refused. The writer ends those that are overdue or
            whose owner is dead, and decides again.
        """
        super().__init__(message, hint=hint, **details)
        self.held_by = held_by


class AlreadyExists(Conflict):
    """An object of that name exists already and was left unchanged."""

    code = "already-exists"


class SubscriptionBusy(Conflict):
    """Consumers are attached to the subscription, which fixes its type and isolation level."""

    code = "subscription-busy"


class TransactionConflict(Conflict):
    """A message is acknowledged already, or its acknowledgement is pending in a transaction."""

    code = "transaction-conflict"


class TransactionNotOpen(Conflict):
    """The transaction is committed or aborted already; the message says when, why and by whom."""

    code = "transaction-not-open"


class TransactionTimedOut(Conflict):
    """The deadline of the transaction has passed: it is aborted."""

    code = "transaction-timed-out"


class TransactionChanged(Conflict):
    """The transaction has changed since the caller read its version."""

    code = "transaction-changed"


class SequenceConflict(Conflict):
    """A message with this producer name and sequence id stands in another open transaction."""

    code = "sequence-conflict"


class NotDeliverable(Conflict):
    """An acknowledgement covers messages not yet deliverable to the subscription, or due for redelivery."""

    code = "not-deliverable"


class ConsumerEvicted(Conflict):
    """The consumer was closed, evicted or found dead; its messages went back to the subscription."""

    code = "consumer-evicted"


class ProducerBusy(Conflict):
    """Connected or waiting producers of the topic do not allow the requested access mode."""

    code = "producer-busy"


class TopicFull(Conflict):
    """Hard retention of the topic refuses producers, and a subscription or transaction keeps more than the limits let
    it; messages are taken again once it has caught up.
    """

    code = "topic-full"

    def __init__(self, message: str, *, upkeep_of: int = 0, **more: Any) -> None:
        """Args:
        upkeep_of: the id of the topic, if a limit may let go of messages in the way; 0 otherwise. The writer does a
            step of the topic's upkeep, and decides again.
        """
        super().__init__(message, **more)
        self.upkeep_of = upkeep_of


class ProducerFenced(Conflict):
    """The topic was taken over (ExclusiveWithFencing), an operator fenced its producers (`producers fence`,
    `transactions abort --fence`), the topic was deleted and created again, or the session ended: this producer can
    never publish on the topic again.
    """

    code = "producer-fenced"


class ObjectHeld(Conflict):
    """Open transactions, consumers or messages hold the object; `--force` ends the holders first."""

    code = "object-held"


class NestedTransaction(Conflict):
    """`transactions run` was called inside `transactions run`."""

    code = "nested-transaction"


class LostConflict(TransactionNotOpen):
    """The transaction lost a conflict over a key and is aborted. Run all its steps again in a new transaction."""

    code = "lost-conflict"
    retryable = True


class WriteTooOld(Conflict):
    """A later transaction has read or written the key: this transaction is aborted. Run all its steps again."""

    code = "write-too-old"
    retryable = True


class RequestTooOld(Conflict):
    """The transaction or the requested time is older than the versions kept, or than a consumed message. All steps of
    the transaction can be run again in a new one; a version that is not kept is never kept again (`retryable`).
    """

    code = "request-too-old"
    retryable = True

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message, **more)
        self.retryable = "transaction" in self.details or "waitsFor" in self.details


class ConditionFailed(Conflict):
    """The key does not have the expected version. The transaction stays usable; the key counts as read."""

    code = "condition-failed"


class ReadOnlyTransaction(Conflict):
    """A read-committed transaction only reads tables."""

    code = "read-only-transaction"


class Busy(TxnctlError):
    """Another process occupies the store; a later retry may well succeed."""

    code = "busy"
    exit_code = 5
    retryable = True


class WriterBusy(Busy):
    """Another process holds the writer gate; the message names the process if possible."""

    code = "writer-busy"


class StoreInUse(Busy):
    """An operation needs the store alone while other processes have it open, or the other way round."""

    code = "store-in-use"


class ReadersFull(Busy):
    """All slots of the reader table are taken."""

    code = "readers-full"


class StoreInvalid(TxnctlError):
    """The store cannot be used as it is."""

    code = "store-invalid"
    exit_code = 6


class StoreNotFound(StoreInvalid):
    """The path of the store does not exist. Nothing was created."""

    code = "store-not-found"


class NotAStore(StoreInvalid):
    """The path exists, but is not a txnctl store."""

    code = "not-a-store"


class UnknownFormat(StoreInvalid):
    """The store has a format unknown to this release, and was left untouched."""

    code = "unknown-format"


class OldFormat(StoreInvalid):
    """The store has an earlier format, which this release only reads. Nothing was changed."""

    code = "old-format"


class ServerUnreachable(StoreInvalid):
    """The server of the store does not answer, is a standby, or has no connection left."""

    code = "server-unreachable"
    retryable = True


class ServerLost(StoreInvalid):
    """The connection to the server was lost: leases and locks are gone, and the handle is of no use any more."""

    code = "server-lost"
    retryable = True


class CommitsLost(StoreInvalid):
    """The server of the store lacks commits that this process has seen: a standby without them was promoted."""

    code = "commits-lost"


class CorruptStore(StoreInvalid):
    """A record fails its checksum, or the file is shorter than it must be."""

    code = "corrupt-store"


class StoreFull(StoreInvalid):
    """The disk, a quota or the address space is full. Acknowledged messages are safe."""

    code = "store-full"


class TooManyFiles(StoreInvalid):
    """This process, or the machine, has as many files open as it may have. Acknowledged messages are safe."""

    code = "too-many-files"


class StoreUnsafe(StoreInvalid):
    """The directory or server cannot keep the promises of a store: a network file system, links, files of another user;
    a server without fsync, or without the synchronous standby that the store is to have.
    """

    code = "store-unsafe"


class NotPermitted(StoreInvalid):
    """The operating system does not let this user open the store."""

    code = "not-permitted"


class StoreClosed(StoreInvalid):
    """The handle was closed, belongs to a process that forked, or latched after a failed commit."""

    code = "store-closed"


class PlatformUnsupported(StoreInvalid):
    """This system lacks something that a store needs: kernel locks, a file of /proc, a user's entry, a home."""

    code = "platform-unsupported"


class OffloadInvalid(StoreInvalid):
    """Offloaded ledgers are unusable: a file is missing, damaged, or of another store."""

    code = "offload-invalid"


class WaitTimeout(TxnctlError):
    """The awaited event did not happen in time."""

    code = "wait-timeout"
    exit_code = 7
    retryable = True


class Refused(TxnctlError):
    """A safety check stops the command; the message names the flag that overrides the check."""

    code = "refused"
    exit_code = 9


class NeedsConfirmation(Refused):
    """A destructive command without a terminal for the question needs `--yes`."""

    code = "needs-confirmation"


class OwnerAlive(Refused):
    """The owner is alive and used the transaction within the last minute; `--force` overrides."""

    code = "owner-alive"


class OutcomeUnknown(TxnctlError):
    """The disk or the server failed during the commit, whose outcome is unknown. Open the store again and look."""

    code = "outcome-unknown"
    exit_code = 10


class GroupRefused(TxnctlError):
    """Some ends of a group were refused; the others are durable. `EndGroup.refused` has each with the error.

    No `Conflict`, because a repetition of the whole would repeat what is durable.
    """

    code = "group-refused"
    exit_code = 4


class ProgramMissing(TxnctlError):
    """A program that this command needs is not installed; the hint says how to install the program."""

    code = "program-missing"
    exit_code = 11


class JobFailed(TxnctlError):
    """A job on Spark failed over something outside txnctl: its memory, a process of Spark, a task of a program.

    Each job stores all of its input, or each micro-batch whole: nothing half-done is in the store.
    """

    code = "job-failed"
    exit_code = 12


class ClusterUnreachable(JobFailed):
    """The master of the Spark cluster does not answer. Nothing was done."""

    code = "cluster-unreachable"
    retryable = True


class JvmDied(JobFailed):
    """The JVM of the job was killed, or ended by itself. Nothing half-done is in the store."""

    code = "jvm-died"
    retryable = True


def _tree(root: type[TxnctlError]) -> dict[str, type[TxnctlError]]:
    classes = {root.code: root}
    for child in root.__subclasses__():
        classes.update(_tree(child))
    return classes


ALL: dict[str, type[TxnctlError]] = _tree(TxnctlError)
"""Every error class by its code."""
