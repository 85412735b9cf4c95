"""The driver of the story on Spark: `monitor` and `settle` as two streaming queries of one session, on one topic.

`python -m txnctl.bank.spark_driver STORE DIRECTORY` runs until its standard input ends. It prints a line of JSON when
it begins, with the pid of its JVM, and one for each micro-batch of monitor, with what that has seen so far.
"""

from __future__ import annotations

import json
import os
import sys
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from txnctl.pipelines.monitor import View

BATCH = 400
"""Messages in a micro-batch of `settle`: few, so that there is a middle of its work to be killed in."""

_EVERY_S = 0.2
_LOOK_S = 0.2


def tell(**facts: Any) -> None:
    """Print a line."""
    print(json.dumps(facts), flush=True)


def drive(store_path: str, directory: str) -> None:
    """Run both queries until standard input ends, or one of them fails."""
    from storage import Store
    from storage.names import full_topic_name
    from txnctl.bank.clients import ACCOUNTS, REQUESTS
    from txnctl.pipelines import monitor, settle
    from txnctl.spark.session import spark_session

    topic = full_topic_name(REQUESTS)
    options = {"path": store_path, "topic": topic, "startingPosition": "earliest"}
    watch = monitor.Watch()

    def seen(view: View) -> None:
        tell(seen=view.total["messages"], uncommitted=view.total["uncommitted"], reserves=view.reserves)

    with (
        Store.open(store_path, program="demo on Spark") as store,
        spark_session("txnctl demo", conf=[("spark.driver.memory", "1g")]) as spark,
    ):
        tell(jvm=spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
        queries = [
            settle.run(
                spark,
                settle.Settler(store, topic, ACCOUNTS),
                {**options, "subscription": "settle", "maxMessagesPerTrigger": str(BATCH)},
                os.path.join(directory, "settle"),
                every=_EVERY_S,
            ),
            monitor.run(
                spark,
                monitor.Monitor(watch, os.path.join(directory, "seen"), seen),
                watch,
                {**options, "subscription": "monitor"},
                os.path.join(directory, "monitor"),
                every=_EVERY_S,
            ),
        ]
        _until_told(queries)


def _until_told(queries: list[StreamingQuery]) -> None:
    """Wait for the end of standard input.

    Raises:
        TxnctlError: what one of the queries failed with.
    """
    from txnctl.pipelines.streaming import wait

    end = Thread(target=sys.stdin.read, daemon=True)
    end.start()
    while end.is_alive():
        for query in queries:
            if not query.isActive:
                wait(query, 0)
        sleep(_LOOK_S)
    for query in queries:
        query.stop()


if __name__ == "__main__":
    from storage.errors import TxnctlError

    try:
        drive(sys.argv[1], sys.argv[2])
    except TxnctlError as error:
        sys.exit(f"txnctl: error: {error.message}")
