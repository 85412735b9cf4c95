"""A streaming query in a driver of its own that copies the changes of one table into another, for a test that kills it.

    python -m tests.txnctl.spark.replica STORE CHECKPOINT

The changes of the table `source` are upserted into `replica`; the query ends when it has stored all.
"""

from __future__ import annotations

import sys

from tests.processes.parent import say
from tests.txnctl.spark.session import started_session

CHANGES_PER_BATCH = 20


def main() -> None:
    path, checkpoint = sys.argv[1:]
    spark = started_session("local[2]", checkpoint)
    changes = (
        spark.readStream.format("txnctl")
        .options(path=path, table="source", readChanges="true", minPartitions="2")
        .option("maxChangesPerTrigger", CHANGES_PER_BATCH)
        .load()
    )
    query = (
        changes.selectExpr("key AS account", "value", "kind = 'delete' AS gone", "timestamp AS version")
        .writeStream.format("txnctl")
        .options(path=path, table="replica", upsert="true", key="account", deleteColumn="gone")
        .options(orderColumn="version", checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    say("done", query.id)
    spark.stop()


if __name__ == "__main__":
    main()
