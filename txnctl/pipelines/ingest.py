"""The ingest job: CSV, lines of JSON and Parquet become messages of a topic, all or nothing.

Tasks read parts of the files (`txnctl/files/`) and write their messages. The first row that cannot be a message ends
the job and nothing is stored, or such rows are left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from txnctl.files import input_parts
from txnctl.spark.runtime import requirements
from txnctl.spark.runtime.job_errors import as_txnctl_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from txnctl.files.input_parts import InputOptions, InputPart
    from txnctl.files.message_rows import MessageColumns

_MESSAGE = ("key", "value", "eventTime")
_REASONS_MAX = 20


class SkippedRows(NamedTuple):
    """How many rows were left out for one reason."""

    reason: str
    rows: int


@dataclass(frozen=True)
class Ingested:
    """The number of stored messages, and of rows left out; the most frequent reasons, each with its rows."""

    messages: int
    skipped: int
    reasons: tuple[SkippedRows, ...] = ()


def plan_files(paths: Sequence[str], columns: MessageColumns, options: InputOptions) -> list[InputPart]:
    """Plan the parts that tasks read; no Spark is needed to refuse a file.

    Raises:
        ProgramMissing: no PyArrow.
        InvalidValue, BadLine
    """
    requirements.require_package("pyarrow")
    return [part for path in paths for part in input_parts.plan(path, columns, options)]


def ingest_files(
    spark: SparkSession,
    parts: Sequence[InputPart],
    write_options: Mapping[str, str],
    columns: MessageColumns,
    options: InputOptions,
) -> Ingested:
    """Store all rows of parts of files in a topic, in one transaction, in their order.

    Args:
        parts: of `plan_files`, with the same columns and options.
        write_options: of `format("txnctl")`: path and topic at least.

    Raises:
        BadLine: names the row.
        TxnctlError
    """
    from pyspark.sql import Observation, functions as f

    from txnctl.pipelines import file_source

    with as_txnctl_errors():
        is_bad = f.col("problem").isNotNull()
        observation = Observation("rows")
        rows = file_source.frame(spark, parts, columns, options).observe(
            observation,
            f.count_if(~is_bad).alias("good"),
            f.count_if(is_bad).alias("bad"),
            f.expr(f"approx_top_k(problem, {_REASONS_MAX})").alias("problems"),
        )
        good = rows.where(~is_bad).select(*_MESSAGE)
        good.write.format("txnctl").mode("append").options(**write_options).save()
        counts = observation.get
        reasons = [
            (item["item"], item["count"]) for item in counts["problems"] or () if item["item"] is not None
        ]
        return Ingested(counts["good"], counts["bad"], tuple(map(SkippedRows._make, reasons)))
