"""Subscriptions, producers, tables, and the last changes: one table each."""

from __future__ import annotations

from txnctl.fields.producer import ago, alive
from txnctl.fields.subscription import living
from txnctl.output.field import Field
from txnctl.output.human import duration
from txnctl.report import tables, transactions
from txnctl.report.markup import Markup, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.output.row import Row

_SUBSCRIPTIONS = (
    Field("subscription", "id", "The subscription."),
    Field("name", "id", "Its topic.", heading="TOPIC"),
    Field("verdict", "text", "The verdict."),
    Field("type", "text", "Its type."),
    Field("subscriptionIsolationLevel", "text", "Its level.", heading="ISOLATION LEVEL"),
    Field("onOpen", "text", "What an open transaction does to it.", heading="ON OPEN"),
    Field("markDeletePosition", "position", "Acknowledged through.", heading="MARK-DELETE"),
    Field("visible", "integer", "Ready."),
    Field("blocked", "integer", "Behind an open transaction."),
    Field("uncommitted", "integer", "Of open transactions."),
    Field("pending", "integer", "Acknowledged in open ones."),
    Field("unackedMessages", "integer", "In flight.", heading="IN FLIGHT"),
    Field("living", "integer", "Consumers.", heading="CONSUMERS"),
)
_PRODUCERS = (
    Field("producerName", "id", "The producer.", heading="PRODUCER"),
    Field("name", "id", "Its topic.", heading="TOPIC"),
    Field("accessMode", "text", "What it asked for.", heading="MODE"),
    Field("epoch", "integer", "Its epoch."),
    Field("owner", "text", "Where it runs."),
    Field("alive", "text", "Whether it lives."),
    Field("lastPublish", "text", "How long ago.", heading="LAST PUBLISH"),
    Field("waits", "text", "Its place in the line.", heading="WAITS"),
)
_TABLES = (
    Field("table", "id", "The table."),
    Field("keys", "integer", "Its rows."),
    Field("intents", "integer", "Writes that are not decided, or not finalised."),
    Field("versions", "integer", "Superseded versions that are kept."),
    Field("holders", "text", "The open transactions that hold keys.", heading="HELD BY"),
)
_CHANGES = (
    Field("number", "integer", "Its number.", heading="NO"),
    Field("changedAt", "time", "When.", heading="CHANGED"),
    Field("action", "text", "What."),
    Field("target", "text", "To what."),
    Field("reason", "text", "Why."),
    Field("by", "text", "Who."),
)
_VERDICTS = ("blocked", "mixed", "no-consumer", "behind", "ok")


def subscriptions(report: Row) -> Markup:
    """List the subscriptions of the topics on the page, blocked subscriptions first."""
    rows = [
        {**subscription, "name": model["name"], "subscription": name, "living": living(subscription)}
        for model in report["timelines"]
        for name, subscription in model["subscriptions"].items()
    ]
    if not rows:
        return tables.section("subscriptions", "Subscriptions", tag("p", "There are no subscriptions."))
    rows.sort(key=lambda row: (_VERDICTS.index(row["verdict"]), -row["blocked"], -row["visible"]))
    listed = tables.table(
        "Subscriptions", rows, _SUBSCRIPTIONS, more="txnctl subscriptions list", layout=tables.TableLayout(40)
    )
    return tables.section("subscriptions", "Subscriptions", listed)


def producers(report: Row) -> Markup:
    """List the connected and the waiting producers."""
    now_ms = report["asOfMs"]
    rows = [
        {
            **row,
            "alive": alive(row),
            "lastPublish": ago(row["lastPublishMs"], now_ms),
            "waits": f"number {row['place']}" if row["place"] else None,
        }
        for row in report["producerSessions"]
    ]
    if not rows:
        return tables.section("producers", "Producers", tag("p", "No producer is connected."))
    listed = tables.table("Producers", rows, _PRODUCERS, more="txnctl producers list")
    return tables.section("producers", "Producers", listed)


def key_values(report: Row) -> Markup:
    """List the tables of the store, tables with held keys first."""
    rows = [
        {**row, "holders": ", ".join([holder["txnId"] for holder in row["heldBy"]]) or None}
        for row in report["tables"]
    ]
    if not rows:
        return tables.section("tables", "Tables", tag("p", "There are no tables."))
    rows.sort(key=lambda row: (-row["intents"], -row["keys"]))
    window = duration(report["store"]["tableRetentionMs"])
    retention_note = tag(
        "p", f"Superseded versions are kept for {window}, the window in which the past can be read."
    )
    listed = tables.table("Tables", rows, _TABLES, more="txnctl tables list")
    keys = tables.keys_elsewhere("txnctl tables intents TABLE")
    return tables.section("tables", "Tables", retention_note, listed, keys)


def happened(report: Row) -> Markup:
    """List the last changes by operators, the ended transactions, and the conflicts."""
    changes = (
        tables.table(
            "Last changes", report["audit"], _CHANGES, more="txnctl audit list", layout=tables.TITLED
        )
        if report["audit"]
        else None
    )
    parts = [changes, transactions.ended(report["ended"]), transactions.conflicts(report["conflicts"])]
    if not any(parts):
        parts = [tag("p", "Nothing was changed by an operator, and no transaction has ended.")]
    return tables.section("happened", "What happened last", *parts)
