"""The effects of open transactions, gathered from the facts of a store and put into clauses of a finding.

A transaction holds back the committed messages behind its own, and keeps acknowledged messages and written keys until
its end. The last two count only where no process is at work in the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.limits import ACTIVE_OWNER_MS
from storage.reports.facts import Facts, HolderFacts, SubscriptionFacts, TableFacts, TopicFacts
from storage.reports.finding import several, some
from storage.subscription.isolation import OnOpen
from storage.txn.owner_state import GONE, living_process
from storage.values.txn_id import TxnID


class Effects:
    """The effects of some transactions together.

    Attributes:
        topics: topics with committed messages that wait for one of them first.
        waiting: subscriptions with blocked messages on these topics.
        pending: subscriptions, and the number of messages acknowledged in the transactions.
        tables: tables, the number of keys held, and the first of the keys.
    """

    __slots__ = ("pending", "tables", "topics", "waiting")

    def __init__(
        self,
        topics: list[TopicFacts],
        waiting: list[SubscriptionFacts],
        pending: list[tuple[SubscriptionFacts, int]],
        tables: list[tuple[TableFacts, int, list[str]]],
    ) -> None:
        self.topics, self.waiting, self.pending, self.tables = topics, waiting, pending, tables

    @classmethod
    def gather(cls, facts: Facts, txns: Sequence[TxnID]) -> Effects:
        """Gather the effects of these transactions."""
        ids = {str(txn) for txn in txns}
        topics = [topic for topic in facts.topics if str(topic.blocked_by) in ids]
        blocked = {topic.topic for topic in topics}
        waiting = [row for row in facts.subscriptions if row.topic in blocked and row.blocked]
        pending, tables = [], []
        for row in facts.subscriptions:
            messages = sum(held.messages for held in row.held_by if _counts(held.holder, ids))
            if messages:
                pending.append((row, messages))
        for table in facts.tables:
            holders = [held for held in table.held_by if held.keys and _counts(held.holder, ids)]
            if holders:
                keys = [key for held in holders for key in held.key_list]
                tables.append((table, sum(held.keys for held in holders), keys))
        return cls(topics, waiting, pending, tables)

    def clauses(self, holder: str) -> list[str]:
        """Every effect, said of a holder that the sentence has named: `3 messages of orders wait behind it`."""
        blocked = [f"{self.blocked()} behind {holder}"] if self.topics else []
        return [*blocked, *self.further(holder)]

    def further(self, holder: str) -> list[str]:
        """Every effect after the blocked messages."""
        readers = [row for row in self.waiting if row.on_open != OnOpen.SKIP.value]
        stuck = [self._reader(row) for row in readers]
        return [*([f"{some(stuck)} cannot read on"] if stuck else []), *self.held(holder)]

    def blocked(self) -> str:
        """`3 committed messages of orders wait`."""
        number = sum(topic.blocked_messages for topic in self.topics)
        names = some([topic.name for topic in self.topics])
        return f"{several(number, 'committed message')} of {names} {'waits' if number == 1 else 'wait'}"

    def blocked_because(self) -> str:
        """The reason why messages wait: maxReadPosition, or only their key."""
        if self.waiting and all(row.on_open == OnOpen.SKIP.value for row in self.waiting):
            return (
                "It is open, and has messages with the same keys; these subscriptions skip open transactions."
            )
        return "It is open, and READ_COMMITTED stops before its first message until it commits or aborts."

    def held(self, holder: str) -> list[str]:
        """`3 messages of subscription billing of topic orders go to nobody: acknowledged in it`; keys likewise."""
        clauses = []
        if self.pending:
            number = sum(messages for _, messages in self.pending)
            names = [subscription_name(row) for row, _ in self.pending]
            verb = "goes" if number == 1 else "go"
            clauses.append(
                f"{several(number, 'message')} of {some(names)} {verb} to nobody: acknowledged in {holder}"
            )
        if self.tables:
            number = sum(keys for _, keys, _ in self.tables)
            named = [
                f"{table.table} ({some(keys)})" if keys else table.table for table, _, keys in self.tables
            ]
            tables, verb = "table" if len(named) == 1 else "tables", "is" if number == 1 else "are"
            clauses.append(f"{several(number, 'key')} of {tables} {some(named)} {verb} held by {holder}")
        return clauses

    def first_held(self) -> str:
        """The first object of which messages or keys are held."""
        return subscription_name(self.pending[0][0]) if self.pending else f"table {self.tables[0][0].table}"

    def _reader(self, row: SubscriptionFacts) -> str:
        return row.subscription if len(self.topics) == 1 else f"{row.subscription} of {row.name}"


def is_abandoned(holder: HolderFacts) -> bool:
    """Whether a transaction has a dead or stopped process, a passed deadline, or no use within `ACTIVE_OWNER_MS`."""
    living = living_process(holder)
    gone = holder.owner_state in GONE or holder.overdue or (living is not None and living.state == "stopped")
    return gone or holder.idle_ms > ACTIVE_OWNER_MS


def subscription_name(row: SubscriptionFacts) -> str:
    """`subscription billing of topic orders`."""
    return f"subscription {row.subscription} of topic {row.name}"


def _counts(holder: HolderFacts, ids: set[str]) -> bool:
    return str(holder.txn_id) in ids and is_abandoned(holder)
