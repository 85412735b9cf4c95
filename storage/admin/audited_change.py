"""Run a change by an operator as one audited store transaction.

Every change has a dry run, which is the same code up to the commit, on an overlay over a view and so without the writer
gate. A change leaves a record in the audit trail. Deleting
and skipping much take several store transactions and are resumable. Open transactions that hold the object refuse the
change; `force` aborts these transactions first, in the same store transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from storage import audit_trail
from storage.actions import Action, Hint, Keyword
from storage.disk.reserve import ReserveShare
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import NotFound, ObjectHeld
from storage.json_form import Flat
from storage.subscription import attached_consumers, catalogue as subscriptions
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.subscription.update import transactions_holding
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason

T = TypeVar("T")

FREEING: Final = frozenset(
    {
        "store config",
        "subscriptions clear-backlog",
        "subscriptions delete",
        "subscriptions evict",
        "subscriptions skip",
        "tables delete",
        "topics compact",
        "topics config",
        "topics delete",
        "topics trim",
        "topics truncate",
    }
)
"""Audited changes that free space, or let go of something: on a full disk they use the reserve."""


@contextmanager
def to_delete(listed: Action) -> Iterator[None]:
    """Name the list of objects where a deletion finds nothing; other changes advise to create the object.

    Raises:
        NotFound: of the block, with the hint replaced.
    """
    try:
        yield
    except NotFound as error:
        parts = error.hint.parts if isinstance(error.hint, Hint) else ()
        if any(isinstance(part, Action) and "create" in part.call for part in parts):
            error.hint = Hint("`{}` shows what there is.", listed)
        raise


class ChangeRequest(NamedTuple):
    """A change as the audit trail names it: the command, and the object changed."""

    action: str
    target: str
    dry_run: bool
    reason: str | None


class Changed(NamedTuple, Generic[T]):
    """The effects of a change."""

    effects: Flat[T]
    dry_run: bool


class OfSubscription(NamedTuple, Generic[T]):
    """The effects of a change on a subscription."""

    topic: str
    subscription: str
    change: Flat[T]


class Aborted(NamedTuple):
    """The transactions that a change has aborted."""

    transactions_aborted: list[TxnID]


def run_change(
    engine: Engine,
    request: ChangeRequest,
    change: Callable[[WriteBatch], T],
    is_change: Callable[[T], bool] | None = None,
    naming: int = 0,
) -> Changed[T]:
    """Run a change and record the effects in the audit trail, in one store transaction.

    Args:
        is_change: tells whether the effects are worth a record; always, if None.
        naming: as `Writer.write` takes it.
    """

    def audited(batch: WriteBatch) -> Changed[T]:
        effects = change(batch)
        if is_change is None or is_change(effects):
            audit_trail.record(batch, engine.process, request.action, request.target, request.reason, effects)
        return Changed(effects, request.dry_run)

    audit_trail.check_reason(request.reason)
    if request.dry_run:
        return engine.connection.rehearse(audited, naming)
    share = ReserveShare.WHOLE if request.action in FREEING else ReserveShare.NONE
    return engine.connection.write(audited, naming=naming, share=share)


def change_subscription(
    engine: Engine,
    names: tuple[str, str],
    request: ChangeRequest,
    change: Callable[[Topic, OpenSubscription[WriteBatch]], T],
    is_change: Callable[[T], bool] | None = None,
) -> Changed[OfSubscription[T]]:
    """Run a change of one open subscription.

    Args:
        names: of the topic and the subscription.
    """

    def loaded(batch: WriteBatch) -> OfSubscription[T]:
        topic = topics.get(batch, names[0])
        subscription = subscriptions.get(batch, topic, names[1])
        opened = OpenSubscription(batch, subscription)
        effects = change(topic, opened)
        if subscriptions.find(batch, topic, names[1]) is not None:
            attached_consumers.note_use(opened)
        return OfSubscription(topic.full_name, names[1], effects)

    return run_change(
        engine, request, loaded, None if is_change is None else lambda effects: is_change(effects.change)
    )


def transactions_on(batch: WriteBatch, subscription: Subscription) -> list[int]:
    """Open transactions that have acknowledgements pending on a subscription."""
    return transactions_holding(OpenSubscription(batch, subscription))


def abort_holders(
    engine: Engine, batch: WriteBatch, subject: str, holders: list[int], force: bool
) -> list[TxnID]:
    """Abort the open transactions that hold an object, and return their ids.

    Raises:
        ObjectHeld: there are such transactions, and `force` is not set.
    """
    ids = [TxnID(txn) for txn in holders]
    if holders and not force:
        names = [str(txn_id) for txn_id in ids]
        raise ObjectHeld(
            f"{subject} is held by open transactions: {', '.join(names[:5])}",
            hint=Hint("Wait for them to end, or use {} to abort them first.", Keyword("force", True)),
            held_by=holders,
            transactions=names,
        )
    for txn in holders:
        engine.coordinator.abort(
            batch, txn, engine.process, AbortReason.ASKED, f"{subject} was changed by force"
        )
    return ids
