"""Words of tables about subscriptions."""

from __future__ import annotations

from txnctl.fields.subscription import level_of, living, mode_of, name_of, short_topic

ROW = {
    "topic": "persistent://public/default/orders", "subscription": "billing", "type": "Shared",
    "subscriptionIsolationLevel": "READ_COMMITTED", "onOpen": "block",
    "consumers": [{"state": "alive"}, {"state": "stopped"}, {"state": "dead"}, {"state": "rebooted"}],
}  # fmt: skip


def test_names_are_as_people_write_them() -> None:
    """Short in the default namespace alone."""
    assert short_topic(ROW) == "orders"
    assert name_of(ROW) == "billing on orders"
    assert short_topic({"topic": "persistent://bank/core/orders"}) == "persistent://bank/core/orders"


def test_the_mode_says_skip_where_it_is_set() -> None:
    """Blocking is what is expected."""
    assert mode_of(ROW) == "Shared, READ_COMMITTED"
    assert level_of({**ROW, "onOpen": "skip"}) == "READ_COMMITTED, on-open skip"


def test_a_stopped_consumer_lives() -> None:
    """It goes on when somebody continues it."""
    assert living(ROW) == 2
