"""The filter of transactions by topic, labels, owner and age, for lists and for aborts of several transactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storage.disk.schema import PART_TOPIC
from storage.disk.view import ReadView
from storage.errors import InvalidValue
from storage.process.clock import nanoseconds
from storage.topic import catalogue as topics
from storage.txn.coordinator import touches
from storage.txn.record import TransactionRecord


@dataclass(frozen=True)
class TransactionFilter:
    """Conditions of a transaction, all of which must hold; None and an empty mapping hold for every transaction.

    Attributes:
        topic: transactions with messages on this topic.
        labels: transactions with all of these labels.
        owner: a part of the owner in words, `user@host:pid (program)`.
        older_than_ms: transactions begun longer ago; the age of an ended transaction is that at its end.
    """

    topic: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    older_than_ms: int | None = None

    def in_view(self, view: ReadView) -> ViewFilter:
        """The filter in a view.

        Raises:
            TopicNotFound
        """
        topic_id = topics.get(view, self.topic).topic_id if self.topic is not None else None
        return ViewFilter(view, self, topic_id, view.clock.wall_ms())


@dataclass(frozen=True)
class ViewFilter:
    """A filter whose topic name is resolved in a view."""

    view: ReadView
    filter: TransactionFilter
    topic_id: int | None
    now_ms: int

    def matches(self, record: TransactionRecord) -> bool:
        """Whether a transaction matches; the condition that costs a lookup is checked last."""
        conditions = self.filter
        if conditions.older_than_ms is not None and record.age_ms(self.now_ms) <= conditions.older_than_ms:
            return False
        if any(record.labels.get(name) != value for name, value in conditions.labels.items()):
            return False
        if conditions.owner is not None and conditions.owner not in str(record.owner):
            return False
        return self.topic_id is None or self.topic_id in touches(self.view, record.txn_id, PART_TOPIC)


def of(topic: str | None, labels: Any, owner: Any, older_than: float | None) -> TransactionFilter:
    """The filter of arguments of the API; `older_than` in seconds.

    Raises:
        InvalidValue: no text, no mapping of texts, or no length of time.
    """
    if owner is not None and not isinstance(owner, str):
        raise InvalidValue(f"a part of an owner is text, not {owner!r}")
    names_and_values = dict(labels or {})
    for name, value in names_and_values.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidValue(f"a label is a name and a text, not {name!r} and {value!r}")
    older_than_ms = None if older_than is None else nanoseconds(older_than, "an age") // 1_000_000
    return TransactionFilter(topic, names_and_values, owner, older_than_ms)
