"""Topics and tables as views of one statement."""

from __future__ import annotations

import pytest

from storage import IsolationLevel, Store
from storage.errors import InvalidValue, TableNotFound, TopicNotFound
from txnctl.pipelines.store_views import NamedRelation, ReadMoment, StoreViews


def test_a_name_is_a_topic_or_a_table(store: Store) -> None:
    """By its short or full name; both, or neither, is an error that says how to go on."""
    store.create_topic("orders")
    store.create_table("accounts")
    views = StoreViews(store, ReadMoment(), {"a": NamedRelation.of_table("a=accounts")})
    assert views.find("orders") == NamedRelation("orders", topic="orders")
    full = "persistent://public/default/orders"
    assert views.find(full) == NamedRelation(full, topic=full)
    assert views.find("accounts").table == views.find("a").table == "accounts"
    for missing in ("order", "a b", "../x"):
        with pytest.raises(TopicNotFound, match="neither a topic nor a table"):
            views.find(missing)
    store.create_table("orders")
    with pytest.raises(InvalidValue, match="a topic and of a table") as error:
        views.find("orders")
    assert error.value.hint == "Give --topic orders or --table orders."


def test_given_names_are_checked_at_once(store: Store) -> None:
    """Before Spark starts."""
    for relation, kind in (
        (NamedRelation.of_topic("a=none"), TopicNotFound),
        (NamedRelation.of_table("none"), TableNotFound),
    ):
        with pytest.raises(kind, match="none"):
            StoreViews(store, ReadMoment(), {relation.name: relation}).check_named()


def test_all_views_have_one_moment(store: Store) -> None:
    """Ends of topics by their level, one version below every open transaction for all tables."""
    for name in ("orders", "payments"):
        store.create_topic(name)
        store.create_producer(name).send(b"1")
    for name in ("accounts", "names"):
        store.create_table(name)
    version = store.table("accounts").put(b"B1", b"1")
    txn = store.transaction()
    store.create_producer("orders").send(b"open", txn=txn)
    store.table("names").put(b"B2", b"2", txn=txn)
    txn.flush()
    relations = [NamedRelation(name, topic=name) for name in ("orders", "payments")]
    relations += [NamedRelation(name, table=name) for name in ("accounts", "names")]
    views = StoreViews(store, ReadMoment())
    options = views.options(relations)
    assert options["orders"] == {
        "path": store.path, "topic": "orders", "isolationLevel": "READ_COMMITTED", "endingPosition": "1:1",
    }  # fmt: skip
    assert options["accounts"]["versionAsOf"] == options["names"]["versionAsOf"]
    assert version <= int(options["accounts"]["versionAsOf"])
    assert views.version is not None
    assert views.version.waits_for is not None
    dirty = StoreViews(store, ReadMoment(IsolationLevel.READ_UNCOMMITTED, as_text=True)).options(
        relations[:1]
    )
    assert dirty["orders"]["endingPosition"] == "1:2"
    assert dirty["orders"]["columns"].startswith("key string, value string, topic,")
    txn.abort()
