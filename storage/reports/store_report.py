"""All that the report of a store shows, from one view: its health, every position, who holds what, what happened.

It is the rows of `overview.py`, `timeline.py`, `explain.py` and their neighbours put together; nothing is judged
here a second time, and nothing that is blocked is read. No message is looked into, and the keys that rows carry for
other reports are taken out: a report is handed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from storage.disk.schema import PART_SUBSCRIPTION
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.reports import audit, explain, overview, producers, store_info, timeline, transactions
from storage.subscription import catalogue as subscriptions
from storage.table import conflict
from storage.topic import catalogue as topics
from storage.txn import record as records
from storage.txn.coordinator import touches
from storage.values.txn_id import TxnID

Row = dict[str, Any]

EXPLAINED = 100
"""Open transactions that are explained one by one: those that hold back the most, the oldest first among equals."""

HAPPENED = 20
"""Changes, ended transactions and conflicts that are listed, the newest."""


def run(engine: Engine, wanted: Sequence[str] | None = None) -> Row:
    """The report; what `overview.run` tells, with the parts below.

    `timelines`, `openTransactions` and `producerSessions` are those of the wanted topics, or of all; the rest is of
    the whole store. `openTransactions` are rows of `transactions explain`, at most `EXPLAINED` of `openCount`.

    Raises:
        TopicNotFound, InvalidName
    """
    connection = engine.connection
    moment = overview.of_the_moment(connection)
    with connection.view() as view:
        locks = connection.environment.lock_file
        every = timeline.every_in(view, locks)
        names = None if wanted is None else {topics.get(view, name).full_name for name in wanted}
        chosen = [each for each in topics.every(view) if names is None or each.full_name in names]
        models = [each for each in every if names is None or each["topic"] in names]
        open_ones = transactions.open_ones(view)
        if wanted is not None:
            open_ones = _concerning(view, open_ones, chosen, models)
        return {
            **overview.in_view(view, engine, every, moment),
            "timelines": models,
            "openCount": len(open_ones), "openTransactions": _explained(view, engine, open_ones, every),
            "producerSessions": [row for each in chosen for row in producers.rows_of(view, locks, each)],
            "space": store_info.space_in(view),
            "audit": audit.rows_in(view, HAPPENED),
            "ended": transactions.last_ended(view, engine, HAPPENED),
            "conflicts": [{**row, "key": None} for row in conflict.rows(view, HAPPENED)],
        }  # fmt: skip


def _concerning(
    view: ReadView, open_ones: list[int], chosen: list[topics.Topic], models: list[Row]
) -> list[int]:
    """Those with messages on these topics, or acknowledgements on their subscriptions."""
    there = {each["txnId"] for model in models for each in model["openTransactions"]}
    mine = {each.subscription_id for topic in chosen for each in subscriptions.every(view, topic.topic_id)}
    return [
        txn
        for txn in open_ones
        if str(TxnID(txn)) in there or mine.intersection(touches(view, txn, PART_SUBSCRIPTION))
    ]


def _explained(view: ReadView, engine: Engine, open_ones: list[int], models: list[Row]) -> list[Row]:
    """The open transactions one by one, with what the chains of their topics say that they hold back."""
    held: dict[str, list[Row]] = {}
    for model in models:
        chain = model["openTransactions"]
        for each in chain:
            held.setdefault(each["txnId"], []).append(explain.held(each, chain[0]["txnId"]))

    def weight(txn: int) -> tuple[int, int]:
        return -sum(each["frees"] for each in held.get(str(TxnID(txn)), [])), txn

    rows = []
    for txn in sorted(open_ones, key=weight)[:EXPLAINED]:
        row = explain.explained(view, engine, records.get(view, txn), held.get(str(TxnID(txn)), []))
        parts = [{**part, "keyList": []} if "keyList" in part else part for part in row["parts"]]
        rows.append({**row, "parts": parts})
    return rows
