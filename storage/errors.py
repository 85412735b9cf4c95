"""Every error a caller may meet, in one tree.

    TxnctlError
    ├── BadInput (2)          InvalidName · InvalidPosition · InvalidValue · InvalidTxnId · MessageTooLarge · BadLine
    ├── NotFound (3)          TopicNotFound · SubscriptionNotFound · TransactionNotFound · MessageNotFound
    │                         ConsumerNotFound · SessionNotFound · TableNotFound · KeyNotFound
    ├── Conflict (4)          AlreadyExists · SubscriptionBusy · TransactionConflict · TransactionNotOpen
    │                         TransactionTimedOut · TransactionChanged · SequenceConflict · NotDeliverable
    │                         ConsumerEvicted · ProducerBusy · ProducerFenced · ObjectHeld · NestedTransaction
    │                         LostConflict · WriteTooOld · RequestTooOld · ConditionFailed · ReadOnlyTransaction
    ├── Busy (5)              WriterBusy · StoreInUse · ReadersFull
    ├── StoreInvalid (6)      StoreNotFound · NotAStore · UnknownFormat · CorruptStore · StoreFull · StoreUnsafe
    │                         NotPermitted · StoreClosed · PlatformUnsupported · OffloadInvalid
    ├── WaitTimeout (7)
    ├── Refused (9)           NeedsConfirmation · OwnerAlive
    ├── OutcomeUnknown (10)
    └── ProgramMissing (11)

A class exists only where a caller would act differently. The message is for people; `code`, `exit_code`,
`retryable` and `details` are the interface. Numbers in brackets are exit codes.
"""

from __future__ import annotations

from typing import Any


class TxnctlError(Exception):
    """Any error that txnctl reports on purpose."""

    code = "error"
    exit_code = 1
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class BadInput(TxnctlError):
    """What was given cannot be used: a name, a position, a size, a line. Nothing was changed."""

    code = "bad-input"
    exit_code = 2


class InvalidName(BadInput):
    """A topic, subscription, producer or consumer name breaks the naming rule of its kind."""

    code = "invalid-name"


class InvalidPosition(BadInput):
    """A position is not `earliest`, `latest`, `L:E` or `L:E:B`."""

    code = "invalid-position"


class InvalidValue(BadInput):
    """A value has the wrong type, is out of its bounds, or is not what the option takes."""

    code = "invalid-value"


class InvalidTxnId(BadInput):
    """A transaction id is not `0:42`, `(0,42)` or `42`."""

    code = "invalid-transaction-id"


class MessageTooLarge(BadInput):
    """A message is larger than the store accepts (5 MiB of value, key and properties)."""

    code = "message-too-large"


class BadLine(BadInput):
    """A line of the input cannot be read; the message names the line and what is wrong with it."""

    code = "bad-line"


class NotFound(TxnctlError):
    """What was named does not exist."""

    code = "not-found"
    exit_code = 3


class TopicNotFound(NotFound):
    """There is no topic of that name in this store."""

    code = "topic-not-found"


class SubscriptionNotFound(NotFound):
    """The topic has no subscription of that name."""

    code = "subscription-not-found"


class TransactionNotFound(NotFound):
    """No transaction of that id was ever begun in this store, or its outcome is no longer kept."""

    code = "transaction-not-found"


class MessageNotFound(NotFound):
    """There is no message at that position: never written, trimmed away, or a transaction marker."""

    code = "message-not-found"


class ConsumerNotFound(NotFound):
    """The subscription has no attached consumer of that name."""

    code = "consumer-not-found"


class SessionNotFound(NotFound):
    """No producer is connected or waits under that session: it was closed, or never opened in this store."""

    code = "session-not-found"


class TableNotFound(NotFound):
    """There is no table of that name in this store."""

    code = "table-not-found"


class KeyNotFound(NotFound):
    """The table has no value under that key."""

    code = "key-not-found"


class Conflict(TxnctlError):
    """The state of the store does not allow it now, and trying again unchanged will not help."""

    code = "conflict"
    exit_code = 4


class AlreadyExists(Conflict):
    """Something of that name is there already; it was left as it is."""

    code = "already-exists"


class SubscriptionBusy(Conflict):
    """Consumers attached to the subscription do not allow it: its type or isolation level is fixed meanwhile."""

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
    """The transaction is no longer the version that was looked at."""

    code = "transaction-changed"


class SequenceConflict(Conflict):
    """A message with this producer name and sequence id stands in another open transaction."""

    code = "sequence-conflict"


class NotDeliverable(Conflict):
    """An acknowledgement covers messages that the subscription cannot be handed yet, or has to be handed again."""

    code = "not-deliverable"


class ConsumerEvicted(Conflict):
    """The consumer was closed, evicted or found dead; what it held went back to the subscription."""

    code = "consumer-evicted"


class ProducerBusy(Conflict):
    """Other producers are connected to the topic, or wait for it, and do not allow the access mode asked for."""

    code = "producer-busy"


class ProducerFenced(Conflict):
    """The topic was taken over (ExclusiveWithFencing), an operator fenced its producers (`producers fence`,
    `transactions abort --fence`), it was deleted and created again, or the session ended: this producer can never
    publish on it again.
    """

    code = "producer-fenced"


class ObjectHeld(Conflict):
    """Open transactions, consumers or messages hold the object; `--force` ends what holds it first."""

    code = "object-held"


class NestedTransaction(Conflict):
    """`transactions run` inside another one."""

    code = "nested-transaction"


class LostConflict(TransactionNotOpen):
    """The transaction met another one over a key and lost: it is aborted. Run all of it again in a new one."""

    code = "lost-conflict"
    retryable = True


class WriteTooOld(Conflict):
    """The key was read or written by a transaction that began later: this one is aborted. Run all of it again."""

    code = "write-too-old"
    retryable = True


class RequestTooOld(Conflict):
    """The transaction, or the moment asked for, is older than what is kept, or than a message it consumed."""

    code = "request-too-old"
    retryable = True


class ConditionFailed(Conflict):
    """The key does not have the version that was asked for. The transaction stays usable; the key counts as read."""

    code = "condition-failed"


class ReadOnlyTransaction(Conflict):
    """A read-committed transaction only reads tables."""

    code = "read-only-transaction"


class Busy(TxnctlError):
    """Somebody else has the store; trying again later may well succeed."""

    code = "busy"
    exit_code = 5
    retryable = True


class WriterBusy(Busy):
    """Another process holds the writer gate; it is named where it can be."""

    code = "writer-busy"


class StoreInUse(Busy):
    """An operation needs the store for itself while other processes have it open, or the other way round."""

    code = "store-in-use"


class ReadersFull(Busy):
    """All slots of the reader table are taken."""

    code = "readers-full"


class StoreInvalid(TxnctlError):
    """The store cannot be used as it is."""

    code = "store-invalid"
    exit_code = 6


class StoreNotFound(StoreInvalid):
    """There is nothing at the path of the store. Nothing was created."""

    code = "store-not-found"


class NotAStore(StoreInvalid):
    """Something is at the path, but it is not a txnctl store."""

    code = "not-a-store"


class UnknownFormat(StoreInvalid):
    """The store was written in a format that this release does not know. It was left untouched."""

    code = "unknown-format"


class CorruptStore(StoreInvalid):
    """A record fails its checksum, or the file is shorter than it must be."""

    code = "corrupt-store"


class StoreFull(StoreInvalid):
    """The disk, a quota or the address space is full. What was acknowledged before is safe."""

    code = "store-full"


class StoreUnsafe(StoreInvalid):
    """The place cannot keep what a store promises: network file system, links, another user's files."""

    code = "store-unsafe"


class NotPermitted(StoreInvalid):
    """The operating system does not let this user open the store."""

    code = "not-permitted"


class StoreClosed(StoreInvalid):
    """The handle was closed, belongs to a process that forked, or latched after a failed commit."""

    code = "store-closed"


class PlatformUnsupported(StoreInvalid):
    """This operating system lacks the kernel locks that the store needs."""

    code = "platform-unsupported"


class OffloadInvalid(StoreInvalid):
    """Offloaded ledgers cannot be used: a file is missing or damaged, or they are those of another store."""

    code = "offload-invalid"


class WaitTimeout(TxnctlError):
    """What was waited for did not come in time."""

    code = "wait-timeout"
    exit_code = 7
    retryable = True


class Refused(TxnctlError):
    """A safety check stops it; the message says which flag overrides it."""

    code = "refused"
    exit_code = 9


class NeedsConfirmation(Refused):
    """A destructive command without a terminal to ask on needs `--yes`."""

    code = "needs-confirmation"


class OwnerAlive(Refused):
    """The owner of the transaction is alive and used it within the last minute; `--force` overrides."""

    code = "owner-alive"


class OutcomeUnknown(TxnctlError):
    """The disk failed during the commit itself: it may or may not have happened. Open again and look."""

    code = "outcome-unknown"
    exit_code = 10


class ProgramMissing(TxnctlError):
    """A program that this command needs is not installed; the hint says how to get it."""

    code = "program-missing"
    exit_code = 11


def _tree(root: type[TxnctlError]) -> dict[str, type[TxnctlError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


ALL: dict[str, type[TxnctlError]] = _tree(TxnctlError)
"""Every error class by its code."""
