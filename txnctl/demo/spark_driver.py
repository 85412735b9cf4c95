"""The driver of the story on Spark: `monitor` and `settle` as two streaming queries of one session, on one topic.

`python -m txnctl.demo.spark_driver STORE DIRECTORY MESSAGES` runs until its standard input ends; MESSAGES is the size
of a micro-batch of `settle`. It prints a line of JSON when it begins, with the pid of its JVM, and one for each
micro-batch of `monitor`, with what that has seen so far.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from txnctl.pipelines.monitor import View
    from txnctl.pipelines.streaming import Stream

_EVERY_S = 0.2
_LOOK_S = 0.2


def tell(**facts: Any) -> None:
    """Print a line."""
    print(json.dumps(facts), flush=True)


def drive(store_path: str, directory: str, messages: str) -> None:
    """Run both queries until standard input ends, or one of them fails."""
    from storage import Store
    from storage.values.names import full_topic_name
    from txnctl.demo.clients import ACCOUNTS, REQUESTS
    from txnctl.pipelines import monitor, settle
    from txnctl.spark.runtime.session import spark_session

    # What a killed driver leaves is removed with the directory.
    tempfile.tempdir = directory
    topic = full_topic_name(REQUESTS)
    options = {"path": store_path, "topic": topic, "startingPosition": "earliest"}
    watch = monitor.Watch()

    def seen(view: View) -> None:
        if view.total:
            tell(seen=view.total["messages"], uncommitted=view.total["uncommitted"], reserves=view.reserves)

    with (
        Store.open(store_path, program="demo on Spark") as store,
        spark_session("txnctl demo", conf=[("spark.driver.memory", "1g")]) as spark,
    ):
        tell(jvm=spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
        streams = [
            settle.run(
                spark,
                settle.Settler(store, topic, ACCOUNTS),
                {**options, "subscription": "settle", "maxMessagesPerTrigger": messages},
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
        _until_told(streams)


def _until_told(streams: list[Stream]) -> None:
    """Wait for the end of standard input.

    Raises:
        TxnctlError: what one of the queries failed with.
    """
    end = Thread(target=sys.stdin.read, daemon=True)
    end.start()
    while end.is_alive() and not any(stream.has_ended() for stream in streams):
        sleep(_LOOK_S)
    for stream in streams:
        stream.stop()


if __name__ == "__main__":
    from storage.errors import TxnctlError

    try:
        drive(*sys.argv[1:])
    except TxnctlError as error:
        sys.exit(f"txnctl: error: {error.message}")
