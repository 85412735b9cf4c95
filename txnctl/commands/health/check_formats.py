"""How `txnctl check` tells monitoring: as a plugin of Nagios does, as metrics of Prometheus, as JSON."""

from __future__ import annotations

from txnctl.commands.health.check_measures import MEASURES, STATES, worst
from txnctl.output.escape import printable
from txnctl.output.prometheus import Metric
from txnctl.output.shell import spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.errors import TxnctlError
    from txnctl.cli.error_report import Failure
    from txnctl.output.row import Row

_BY_NAME = {measure.name: measure for measure in MEASURES}
_LESS_IS_WORSE = {measure.name for measure in MEASURES if measure.less_is_worse}


def state_without_store(error: TxnctlError) -> str:
    """CRITICAL where the store is broken or full; UNKNOWN where the store could not be read from here at this
    moment.
    """
    unseen = ("store-not-found", "not-permitted", "store-in-use", "platform-unsupported")
    return "UNKNOWN" if error.code in unseen or error.exit_code == 2 else "CRITICAL"


def nagios(measures: Sequence[Row]) -> Iterator[str]:
    """One line with the state and performance data, then a line for each measure beyond a threshold."""
    bad = sorted(
        (row for row in measures if row["state"] != "OK"), key=lambda row: -STATES.index(row["state"])
    )
    facts = [f"{row['name']} {_value(row)}" for row in bad] or ["all measures are within their thresholds"]
    performance = " ".join([_performance(row) for row in measures])
    yield f"TXNCTL {worst(measures)} - {_plain(', '.join(facts))} | {performance}"
    for row in bad:
        limit = row["critical" if row["state"] == "CRITICAL" else "warn"]
        where = f" ({row['where']})" if row["where"] else ""
        sign = "<" if row["name"] in _LESS_IS_WORSE else ">"
        text = (
            f"{row['state']}: {row['name']} {_value(row)} {sign} {_BY_NAME[row['name']].shown(limit)}{where}"
        )
        yield _plain(f"{text}: {row['what']}")


def nagios_without_store(error: TxnctlError | Failure, state: str) -> Iterator[str]:
    """What is known: the store could not be read."""
    yield f"TXNCTL {state} - {_plain(error.message)}"
    if error.hint:
        yield _plain(spell(error.hint))


def _value(row: Row) -> str:
    return _BY_NAME[row["name"]].shown(row["value"])


def _plain(text: str) -> str:
    """Without characters that end the text for a monitoring system."""
    return printable(text).replace("|", "/")


def _performance(row: Row) -> str:
    """`late=2;0;;0`: value with unit, the two thresholds as ranges, the least there can be."""
    name = row["name"].replace("-", "_")
    sign = ":" if row["name"] in _LESS_IS_WORSE else ""
    limits = [
        _base(row, row[level]) + sign if row[level] is not None else "" for level in ("warn", "critical")
    ]
    unit = {"ms": "s", "bytes": "B"}.get(row["unit"], "")
    return f"{name}={_base(row, row['value'])}{unit};{limits[0]};{limits[1]};0"


def _base(row: Row, value: int) -> str:
    """A value in the unit that performance data has: seconds, bytes, or a number."""
    return f"{value / 1000:.3f}".rstrip("0").rstrip(".") if row["unit"] == "ms" else str(value)


def prometheus(row: Row, measures: Sequence[Row]) -> Iterator[str]:
    """All gauges of a store."""
    for metric in (*_of_store(row, measures), *_of_topics(row), *_of_subscriptions(row), *_of_tables(row)):
        yield from metric.lines()


def prometheus_without_store() -> Iterator[str]:
    """Only the failure to read the store."""
    yield from _up(0).lines()


def _up(value: int) -> Metric:
    return Metric("txnctl_up", "Whether the store could be opened and read.", [({}, value)])


def _of_store(row: Row, measures: Sequence[Row]) -> Iterator[Metric]:
    store, transactions = row["store"], row["transactions"]
    values = {measure["name"]: measure["value"] for measure in measures}
    oldest = transactions["oldest"]
    yield _up(1)
    for name, help, value in (
        ("open_transactions", "Open transactions.", transactions["open"]),
        ("late_transactions", "Open transactions that are overdue or orphaned.", len(transactions["late"])),
        ("oldest_transaction_age_seconds", "Since the oldest began.", oldest and oldest["ageMs"] / 1000),
        (
            "blocked_age_seconds",
            "How long the oldest blocked message has waited.",
            values["blocked-age"] / 1000,
        ),
        ("disk_free_bytes", "What the disk of the store has left.", store["diskFreeBytes"]),
        ("data_bytes", "The size of the data file.", store["dataBytes"]),
        ("used_bytes", "What of the data file is in use.", store["usedBytes"]),
        ("readers", "Places for readers that are taken.", row["readers"]["inUse"]),
        ("readers_max", "Places for readers.", row["readers"]["max"]),
        ("stopped_holders", "Stopped processes that hold what others wait for.", values["stopped"]),
        ("held_objects", "Subscriptions and tables that idle transactions hold.", values["held"]),
        ("writer_gate_stopped", "1 while a stopped process holds the writer gate.", values["gate"]),
    ):
        yield Metric(f"txnctl_{name}", help, [({}, value)])
    states = [({"measure": measure["name"]}, STATES.index(measure["state"])) for measure in measures]
    yield Metric("txnctl_check_state", "0 OK, 1 WARNING, 2 CRITICAL, by the thresholds of the check.", states)


def _of_topics(row: Row) -> Iterator[Metric]:
    labels = [{"topic": topic["topic"]} for topic in row["topics"]]
    for name, help, field in (
        ("messages", "Stored messages.", "msgCount"),
        ("blocked_messages", "Committed messages behind an open transaction.", "blockedMessages"),
        ("uncommitted_messages", "Messages of open transactions.", "uncommittedMessages"),
        ("open_transactions", "Open transactions with messages on the topic.", "ongoingTxnCount"),
    ):
        values = [topic[field] for topic in row["topics"]]
        yield Metric(f"txnctl_topic_{name}", help, list(zip(labels, values, strict=True)))
    waiting = [({"topic": queue["topic"]}, queue["waiting"]) for queue in row["producers"]]
    yield Metric("txnctl_topic_waiting_producers", "Living producers that wait for their turn.", waiting)


def _of_subscriptions(row: Row) -> Iterator[Metric]:
    rows = row["subscriptions"]
    labels = [
        {
            **{name: subscription[name] for name in ("topic", "subscription", "subscriptionIsolationLevel")},
            "subscriptionType": subscription["type"],
        }
        for subscription in rows
    ]  # fmt: skip
    for name, help, field in (
        ("visible_messages", "What could be handed out now, in flight included.", "visible"),
        ("blocked_messages", "Committed, but behind an open transaction.", "blocked"),
        ("uncommitted_messages", "Of open transactions.", "uncommitted"),
        ("pending_messages", "Acknowledged in a transaction that is open.", "pending"),
        ("unacked_messages", "In flight.", "unackedMessages"),
    ):
        values = [subscription[field] for subscription in rows]
        yield Metric(f"txnctl_subscription_{name}", help, list(zip(labels, values, strict=True)))
    living = [sum(consumer["state"] in ("alive", "stopped") for consumer in row["consumers"]) for row in rows]
    yield Metric(
        "txnctl_subscription_consumers", "Consumers whose process lives.", list(zip(labels, living, strict=True))
    )  # fmt: skip


def _of_tables(row: Row) -> Iterator[Metric]:
    for name, help, field in (
        ("keys", "Keys of the table.", "keys"),
        ("versions", "Superseded versions that are kept.", "versions"),
        ("intents", "Writes that are not decided, or not finalised.", "intents"),
    ):
        samples = [({"table": table["table"]}, table[field]) for table in row["tables"]]
        yield Metric(f"txnctl_table_{name}", help, samples)
