"""Steps that the tests of table range share."""

from __future__ import annotations

import pickle
from typing import Any

from tests.txnctl.spark.asked import of_rows
from txnctl.spark import options
from txnctl.spark.source import table_reader


def rows(path: str, *columns: str, **given_options: str) -> list[dict[str, Any]]:
    parts = table_reader.plan_partitions(options.table_read({"path": path, "table": "t", **given_options}))
    schema = of_rows(*columns)
    return [
        row
        for part in pickle.loads(pickle.dumps(parts))
        for batch in part.batches(schema)
        for row in batch.to_pylist()
    ]
