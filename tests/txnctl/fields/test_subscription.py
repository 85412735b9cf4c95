"""Words of tables about subscriptions."""

from __future__ import annotations

from typing import NamedTuple

from storage.process.identity import ProcessIdentity
from storage.reports.stats import ConsumerRow
from txnctl.fields.subscription import level_of, living, mode_of, name_of, short_topic

OWNER = ProcessIdentity("db-2", b"", 48211, 0, "anna", "txnctl")


class Row(NamedTuple):
    """A subscription with the names, the mode and the consumers."""

    topic: str
    subscription: str
    type: str
    subscription_isolation_level: str
    on_open: str
    consumers: list[ConsumerRow]


ROW = Row(
    topic="persistent://public/default/orders", subscription="billing", type="Shared",
    subscription_isolation_level="READ_COMMITTED", on_open="block",
    consumers=[
        ConsumerRow("worker", OWNER, OWNER.pid, state, 0, 0)
        for state in ("alive", "stopped", "dead", "rebooted")
    ],
)  # fmt: skip


def test_names_are_as_people_write_them() -> None:
    """Short in the default namespace alone."""
    assert short_topic(ROW) == "orders"
    assert name_of(ROW) == "billing on orders"
    assert short_topic(ROW._replace(topic="persistent://bank/core/orders")) == "persistent://bank/core/orders"


def test_the_mode_says_skip_where_it_is_set() -> None:
    """Blocking is what is expected."""
    assert mode_of(ROW) == "Shared, READ_COMMITTED"
    assert level_of(ROW._replace(on_open="skip")) == "READ_COMMITTED, on-open skip"


def test_a_stopped_consumer_lives() -> None:
    """It goes on when somebody continues it."""
    assert living(ROW) == 2
