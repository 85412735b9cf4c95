"""What Spark does with a streaming source, step by step, so that it can be killed between any two of them.

The order is that of its micro-batch execution: the end of a batch is written to the log of offsets, the batch is run, its
number is written to the log of commits, and the source is told with the next batch that this one is done. After a kill
the last batch that has an offset and no commit runs again.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

from tests.txnctl.spark.asked import of_messages, struct
from txnctl.spark import options
from txnctl.spark.source.topic_stream import TopicStreamReader

COLUMNS = ("topic", "value", "txnState")


class Killed(Exception):
    """The driver died."""


class Query:
    """A query with its checkpoint. `output` is what a sink that is idempotent by batch number holds."""

    def __init__(self, path: str, **given_options: str) -> None:
        self._options = {"path": path, **given_options}
        self.offsets: list[str] = []
        self.committed = 0
        self.output: dict[int, list[dict[str, Any]]] = {}

    def run(self, alive: Callable[[], bool] = lambda: True) -> None:
        """Run until nothing is left to read, as a process of its own, which dies when `alive` says no."""

        def step() -> None:
            if not alive():
                raise Killed

        reader = TopicStreamReader(options.topic_stream(self._options), struct(*COLUMNS))
        try:
            self._run(reader, step)
        finally:
            reader.stop()

    def _run(self, reader: TopicStreamReader, step: Callable[[], None]) -> None:
        limit = reader.getDefaultReadLimit()
        start: dict[str, str] = {}
        if not self.offsets:
            step()
            start = reader.initialOffset()
            assert reader.initialOffset() == start
            step()
        if len(self.offsets) > self.committed:
            self._run_last(reader, step)
        while True:
            start = json.loads(self.offsets[-1].split("\n")[1]) if self.offsets else start
            end = reader.latestOffset(start, limit)
            step()
            if end == start:
                return
            self.offsets.append(json.dumps(start) + "\n" + json.dumps(end))
            step()
            if len(self.offsets) > 1:
                reader.commit(start)
                step()
            self._run_last(reader, step)

    def _run_last(self, reader: TopicStreamReader, step: Callable[[], None]) -> None:
        """Run the batch whose offset was written last."""
        number = len(self.offsets) - 1
        start, end = map(json.loads, self.offsets[number].split("\n"))
        partitions = pickle.loads(pickle.dumps(reader.partitions(start, end)))
        step()
        rows = [
            row
            for each in partitions
            for batch in each.value.batches(of_messages(*COLUMNS))
            for row in batch.to_pylist()
        ]
        known = self.output.setdefault(number, rows)
        assert [(row["topic"], row["value"]) for row in known] == [
            (row["topic"], row["value"]) for row in rows
        ]
        step()
        self.committed = number + 1
        step()

    def values(self, topic: str = "t") -> list[bytes]:
        """The values of a topic that reached the sink, in order."""
        return [
            row["value"] for _, rows in sorted(self.output.items()) for row in rows if row["topic"] == topic
        ]
