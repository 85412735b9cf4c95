"""The driver of the story on Spark: `monitor` and `settle` as two streaming queries of one session, on one topic.

`python -m txnctl.demo.spark_driver STORE DIRECTORY MESSAGES` runs until its standard input ends; MESSAGES is the size
of a micro-batch of `settle`. The driver prints a line of JSON at the start, with the pid of its JVM, and a line for
each micro-batch of `monitor`, with the sums so far.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnctl.pipelines.monitor import View
    from txnctl.pipelines.streaming import Stream

_INTERVAL_S = 0.2
_POLL_S = 0.2


def print_facts(**facts: object) -> None:
    """Print a line of JSON."""
    print(json.dumps(facts), flush=True)


def drive(store_path: str, directory: str, messages: str) -> None:
    """Run both queries until standard input ends, or a query fails."""
    from storage import Store
    from storage.values.names import full_topic_name
    from txnctl.demo.clients import ACCOUNTS, REQUESTS
    from txnctl.demo.request import POSTING
    from txnctl.pipelines import monitor, settle
    from txnctl.spark.runtime.session import spark_session

    # Temporary files of a killed driver are removed with the directory.
    tempfile.tempdir = directory
    topic = full_topic_name(REQUESTS)
    options = {"path": store_path, "topic": topic, "startingPosition": "earliest"}

    def report_view(view: View) -> None:
        if view.total is not None:
            print_facts(seen=view.total.messages, uncommitted=view.total.uncommitted, reserves=view.reserves)

    with (
        Store.open(store_path, program="demo on Spark") as store,
        spark_session("txnctl demo", conf=[("spark.driver.memory", "1g")]) as spark,
    ):
        print_facts(jvm=spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
        streams = [
            settle.start_settling(
                spark,
                settle.Settler(store, topic, ACCOUNTS, settle.SettleOptions(POSTING)),
                {**options, "subscription": "settle", "maxMessagesPerTrigger": messages},
                os.path.join(directory, "settle"),
                interval_s=_INTERVAL_S,
            ),
            monitor.start_monitoring(
                spark,
                monitor.Monitor(monitor.MonitorOptions(), os.path.join(directory, "seen"), report_view),
                {**options, "subscription": "monitor"},
                os.path.join(directory, "monitor"),
                interval_s=_INTERVAL_S,
            ),
        ]
        _run_until_input_ends(streams)


def _run_until_input_ends(streams: list[Stream]) -> None:
    """Wait for the end of standard input.

    Raises:
        TxnctlError: a query failed.
    """
    end = Thread(target=sys.stdin.read, daemon=True)
    end.start()
    while end.is_alive() and not any(stream.has_ended() for stream in streams):
        sleep(_POLL_S)
    for stream in streams:
        stream.stop()


if __name__ == "__main__":
    from storage.errors import TxnctlError

    try:
        drive(*sys.argv[1:])
    except TxnctlError as error:
        sys.exit(f"txnctl: error: {error.message}")
