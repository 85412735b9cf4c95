"""Topics and tables as views of one SQL statement: which ones the statement names, and the moment of the read.

Topics are read up to positions from one view of the store, tables at one version, taken just before: the newest that no
open transaction can change. So rows and messages of one transaction are read together, unless an older open transaction
holds the messages back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidName, InvalidValue, TableNotFound, TopicNotFound
from storage.subscription.isolation import IsolationLevel
from storage.values.names import short_topic_name
from storage.values.position import Position
from txnctl.output.shell import line

if TYPE_CHECKING:
    from storage import Store
    from storage.client.final_version import FinalVersion

_VERSION_MIN: Final = 10**15
"""Smaller numbers are times in milliseconds; no row has such a version."""


@dataclass(frozen=True)
class NamedRelation:
    """A topic or a table under the name that a statement has for it."""

    name: str
    topic: str | None = None
    table: str | None = None

    @classmethod
    def of_topic(cls, text: str) -> NamedRelation:
        """Parse `NAME`, or `NAME=TOPIC`."""
        name, _, topic = text.partition("=")
        return cls(name, topic=topic or name)

    @classmethod
    def of_table(cls, text: str) -> NamedRelation:
        """Parse `NAME`, or `NAME=TABLE`."""
        name, _, table = text.partition("=")
        return cls(name, table=table or name)


@dataclass(frozen=True)
class ReadMoment:
    """How and as of when the views of a statement read.

    Attributes:
        level: of topics.
        at: the version of tables, or None for the newest.
        offload_path: of offloaded ledgers, for tasks on further hosts.
        as_text: read keys and values as text.
    """

    level: IsolationLevel = IsolationLevel.READ_COMMITTED
    at: int | None = None
    offload_path: str | None = None
    as_text: bool = False


@dataclass
class StoreViews:
    """The views of one statement.

    Args:
        named: views that the caller names; a name that is not there means the topic or table of that name.

    Attributes:
        version: of the tables, once `options` has run; None without tables.
    """

    store: Store
    moment: ReadMoment
    named: Mapping[str, NamedRelation] = field(default_factory=dict)
    version: FinalVersion | None = None

    def check_named(self) -> None:
        """Check that the topics and tables of the caller exist.

        Raises:
            TopicNotFound, TableNotFound, InvalidName
        """
        for view in self.named.values():
            if view.topic is not None:
                self.store.reports.topic_extents([view.topic])
            else:
                self.store.table(view.table or "")

    def find(self, name: str) -> NamedRelation:
        """Return the view of a name in a statement.

        Raises:
            TopicNotFound: there is neither a topic nor a table of that name.
            InvalidValue: there are both.
        """
        if name in self.named:
            return self.named[name]
        try:
            is_topic = self.store.has_topic(name)
        except InvalidName:
            is_topic = False
        try:
            is_table = self.store.has_table(name)
        except InvalidName:
            is_table = False
        if is_topic and is_table:
            raise InvalidValue(
                f"{name} is the name of a topic and of a table",
                hint=f"Give --topic {name} or --table {name}.",
            )
        if not is_topic and not is_table:
            raise self._missing(name)
        return NamedRelation(name, topic=name) if is_topic else NamedRelation(name, table=name)

    def differ_in_case(self, views: Sequence[NamedRelation]) -> bool:
        """Report whether a topic, a table or a name that is given differs from one of the views in case alone."""
        topics = map(short_topic_name, self.store.topics())
        names = {*topics, *self.store.tables(), *self.named, *(view.name for view in views)}
        folded = Counter(name.lower() for name in names)
        return any(folded[view.name.lower()] > 1 for view in views)

    def _missing(self, name: str) -> TopicNotFound | TableNotFound:
        from difflib import get_close_matches

        topics = [short_topic_name(extent.topic) for extent in self.store.reports.topic_extents()]
        near = get_close_matches(name, [*topics, *self.store.tables(), *self.named], 1)
        hint = (
            f"Did you mean {near[0]}?"
            if near
            else f"`{line('topics list')}` and `{line('tables list')}` show names."
        )
        return TopicNotFound(f"there is neither a topic nor a table {name}", hint=hint, name=name)

    def options(self, views: Sequence[NamedRelation]) -> dict[str, dict[str, str]]:
        """Return the options of `format("txnctl")` for each view by name, all as of one moment.

        Raises:
            TopicNotFound, TableNotFound, InvalidValue
            RequestTooOld: versions of tables at the moment are not kept any more.
        """
        tables = [view.table for view in views if view.table is not None]
        if tables:
            self.version = self.store.table(tables[0]).version_at(self.moment.at)
        topics = list(dict.fromkeys(view.topic for view in views if view.topic is not None))
        extents = self.store.reports.topic_extents(topics) if topics else []
        ends = {topic: extent.bound(self.moment.level) for topic, extent in zip(topics, extents, strict=True)}
        return {
            view.name: self._of_table(view.table or "")
            if view.topic is None
            else self._of_topic(view.topic, ends)
            for view in views
        }

    def _of_table(self, table: str) -> dict[str, str]:
        options = {"table": table, **self._common()}
        if self.version is not None and self.version.version >= _VERSION_MIN:
            options["versionAsOf"] = str(self.version.version)
        if self.moment.as_text:
            options["columns"] = "key string, value string, timestamp"
        return options

    def _of_topic(self, topic: str, ends: Mapping[str, Position]) -> dict[str, str]:
        from txnctl.spark.schemas import MESSAGE_TYPES

        end = ends[topic]
        options = {
            "topic": topic,
            "isolationLevel": self.moment.level.name,
            "endingPosition": f"{end.ledger_id}:{end.entry_id + 1}",
            **self._common(),
        }
        if self.moment.as_text:
            options["columns"] = ", ".join(
                f"{name} string" if name in ("key", "value") else name for name in MESSAGE_TYPES
            )
        return options

    def _common(self) -> dict[str, str]:
        offload_path = self.moment.offload_path
        return {"path": self.store.path} | ({} if offload_path is None else {"offloadPath": offload_path})
