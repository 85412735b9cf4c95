"""Catalogue: `storage/topic/catalogue.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store
from storage.errors import (
    AlreadyExists,
    InvalidName,
    InvalidValue,
)
from tests.row_json import row_json


class TestTopics:
    """The catalogue."""

    def test_topics_are_listed_in_order(self, store: Store) -> None:
        """By name, short where they can be."""
        for name in ("b", "a", "persistent://x/y/z"):
            store.create_topic(name)
        assert store.topics() == ["a", "b", "t", "persistent://x/y/z"]
        assert store.has_topic("persistent://public/default/a")
        assert not store.has_topic("c")

    def test_a_topic_is_created_once(self, store: Store) -> None:
        """Under either of its names."""
        for name in ("t", "persistent://public/default/t"):
            with pytest.raises(AlreadyExists):
                store.create_topic(name)

    @pytest.mark.parametrize("name", ["", "a/b", "../a", "a b", "a\0", "x" * 129])
    def test_a_bad_name_is_refused_everywhere(self, store: Store, name: str) -> None:
        """Creating, producing, reading, subscribing, asking: never a path, never a traceback."""
        calls: list[Callable[[str], object]] = [
            store.create_topic, store.has_topic, store.create_producer, store.reader, store.reports.topic_stats,
            store.admin.topics.delete_topic, store.reports.last_message_id, lambda each: store.subscribe(each, "a"),
            lambda each: list(row_json(store.reports.topic_log(each))),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(InvalidName):
                call(name)

    @pytest.mark.parametrize("limit", ["ledger_entries_max", "ledger_bytes_max", "ledger_age_max_ms"])
    @pytest.mark.parametrize("value", [0, -1, 1 << 62])
    def test_limits_of_a_ledger_have_bounds(self, store: Store, limit: str, value: int) -> None:
        """At least one, and no absurd number; nothing is created."""
        with pytest.raises(InvalidValue):
            store.create_topic("u", **{limit: value})  # type: ignore[arg-type]
        assert not store.has_topic("u")
