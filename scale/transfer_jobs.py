"""The Spark jobs of the transfers, in a process that can be killed: `python -m scale.transfer_jobs STORE DIR JOB...`.

    load               ingest the four files
    settle=N           settle topic `transfers` into the table of turns, until N messages of it are settled
    audit              audit the table of the local engine
    copy               export the topic in three formats, and ingest each export again

The process says a line of JSON for each job that it has done.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scale.transfer_data import SHAPES
from storage import Store
from storage.values.names import full_topic_name
from txnctl.files.csv_rows import checked_dialect
from txnctl.files.input_parts import InputOptions
from txnctl.files.message_rows import MessageColumns
from txnctl.pipelines import audit, export, ingest
from txnctl.pipelines.request import RequestForm
from txnctl.pipelines.settle import Settler, start_settling
from txnctl.pipelines.settler import SettleOptions
from txnctl.spark.runtime.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOADED, SENT = "loaded", "transfers"
LOCAL, TURNS = "by_local", "in_turns"
FORM = RequestForm("amount", debit="from_account", credit="to_account")
FORMATS = ("json", "csv", "parquet")
BATCH = 37
SUBSCRIPTION = f"settle-{TURNS}"
_POLL_S = 0.05


def load(spark: SparkSession, store: str, directory: Path) -> int:
    """Ingest the files, each in one transaction; return the number of messages."""
    messages = 0
    for shape in SHAPES:
        options = InputOptions("csv", dialect=checked_dialect(shape.delimiter, shape.encoding))
        columns = MessageColumns(event_time="time")
        target = {"path": store, "topic": LOADED, "writeId": shape.file}
        parts = ingest.plan_files([str(directory / shape.file)], columns, options)
        messages += ingest.ingest_files(spark, parts, target, columns, options).messages
    return messages


def settle(spark: SparkSession, path: str, messages: int) -> int:
    """Settle in small batches until so many messages are settled; return how many this process has settled."""
    topic = full_topic_name(SENT)
    options = {
        "path": path,
        "topic": topic,
        "subscription": SUBSCRIPTION,
        "startingPosition": "earliest",
        "maxMessagesPerTrigger": str(BATCH),
    }
    with Store.open(path, program="transfers") as store, tempfile.TemporaryDirectory() as checkpoint:
        settler = Settler(store, topic, TURNS, SettleOptions(FORM))
        stream = start_settling(spark, settler, options, checkpoint, interval_s=0.01)
        while settled(store) < messages and not stream.has_ended(_POLL_S):
            continue
        stream.stop()
        return settler.total.requests


def settled(store: Store) -> int:
    """Return the number of messages that the subscription of the turns has behind it."""
    names = [row.subscription for row in store.reports.list_subscriptions(SENT)]
    if SUBSCRIPTION not in names:
        return 0
    extent = store.reports.topic_extents([SENT])[0]
    stats = store.reports.subscription_stats(SENT, SUBSCRIPTION).row.stats
    return store.reports.count_messages_between(
        SENT, extent.before, stats.mark_delete_position, "READ_COMMITTED"
    )


def compare(spark: SparkSession, path: str) -> int:
    """Audit the table of the local engine; return the number of accounts that differ."""
    sources = audit.AuditSources({"path": path, "topic": SENT}, {"path": path, "table": LOCAL})
    return audit.audit_balances(spark, sources, form=FORM).differing


def copy(spark: SparkSession, path: str, directory: Path) -> int:
    """Export the topic, and ingest each export into a topic of its own; return the number of messages."""
    messages = 0
    rows = export.read_topic(spark, {"path": path, "topic": SENT})
    for format_ in FORMATS:
        place = str(directory / f"export.{format_}")
        export.export_rows(rows, place, format_, max_files=1)
        target = {
            "path": path,
            "topic": f"again-{format_}",
            "createTopic": "true",
            "writeId": f"again-{format_}",
        }
        columns, options = MessageColumns(value="value"), InputOptions(format_)
        parts = ingest.plan_files([place], columns, options)
        messages += ingest.ingest_files(spark, parts, target, columns, options).messages
    return messages


def main(words: list[str]) -> None:
    """Run the jobs in order."""
    path, place, *jobs = words
    directory = Path(place)
    with spark_session("txnctl transfers", conf=[("spark.driver.memory", "1g")]) as spark:
        for job in jobs:
            name, _, number = job.partition("=")
            if name == "settle":
                result = settle(spark, path, int(number))
            elif name == "audit":
                result = compare(spark, path)
            else:
                result = (load if name == "load" else copy)(spark, path, directory)
            print(json.dumps({"job": name, "result": result}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
