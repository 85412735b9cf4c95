"""The export job: a topic or a table becomes Parquet with its columns, or CSV or JSON with bytes as text or Base64.

JSON lines of a topic have the fields of `consume -o ndjson`, lines of a table the fields of `tables export`: so
`produce --input ndjson` and `tables import` accept the files.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from storage.errors import InvalidValue
from txnctl.pipelines import files
from txnctl.pipelines.written_files import write_json_lines, write_parquet
from txnctl.spark.file_systems import is_s3, is_uri
from txnctl.spark.runtime.job_errors import as_txnctl_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PARTIAL = ".partial"
_BYTES = ("key", "value")
_CSV = {
    "header": "true",
    "timeZone": "UTC",
    "escape": '"',
    "emptyValue": '""',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
}
"""Times are in UTC, whatever the zone of the session: without the option Spark writes them in that zone."""


def transform(rows: DataFrame, format_: str) -> DataFrame:
    """Convert messages or table rows into columns that the format supports; for JSON into lines as `value`."""
    if format_ == "parquet":
        return rows
    return json_lines(rows) if format_ == "json" else csv_columns(rows)


def csv_columns(rows: DataFrame) -> DataFrame:
    """Put text into the column of its name, and other bytes as Base64 into a second column; properties become JSON."""
    from pyspark.sql import functions as f

    columns: list[Column] = []
    for name in rows.columns:
        if name in _BYTES:
            columns += [_text(name).alias(name), _base64(name).alias(f"{name}Base64")]
        elif name == "properties":
            columns.append(f.to_json(name).alias(name))
        else:
            columns.append(f.col(name))
    return rows.select(*columns)


def json_lines(rows: DataFrame) -> DataFrame:
    """Convert each row into a JSON object, with either the text or the Base64 of its bytes."""
    from pyspark.sql import functions as f

    fields_of_row = (
        _message_fields()
        if "ledgerId" in rows.columns
        else [f.col("timestamp").cast("string").alias("version")]
    )
    id_fields, rest = (
        (fields_of_row[:1], fields_of_row[1:]) if "ledgerId" in rows.columns else ([], fields_of_row)
    )

    def line(key: Column, value: Column) -> Column:
        return f.to_json(f.struct(*id_fields, value, key, *rest), _JSON)

    def fields(name: str) -> tuple[Column, Column]:
        return _text(name).alias(name), _base64(name).alias(f"{name}Base64")

    (key, key64), (value, value64) = fields("key"), fields("value")
    key_is_text, value_is_text = _is_text("key"), _is_text("value")
    return rows.select(
        f.when(key_is_text & value_is_text, line(key, value))
        .when(key_is_text, line(key, value64))
        .when(value_is_text, line(key64, value))
        .otherwise(line(key64, value64))
        .alias("value")
    )


def export_rows(
    rows: DataFrame, destination: str, format_: str, *, overwrite: bool = False, max_files: int | None = None
) -> int:
    """Write the rows of a topic or a table as files of a directory; return the number of rows.

    On this machine the directory appears when complete. On S3 its files appear when all are complete, each for itself
    (`s3_export.py`). Elsewhere too the file `_SUCCESS` marks a complete directory.

    Raises:
        AlreadyExists: the destination exists.
    """
    from pyspark.sql import Observation, functions as f

    if not overwrite:
        files.check_absent(destination)
    observation = Observation("rows")
    with as_txnctl_errors():
        transformed = transform(rows.observe(observation, f.count(f.lit(1)).alias("rows")), format_)
        if max_files is not None:
            transformed = transformed.coalesce(max_files)
        if is_s3(destination):
            _write_to_s3(transformed, destination, format_, overwrite=overwrite)
        elif is_uri(destination):
            _write(transformed, destination, format_, "overwrite" if overwrite else "error")
        else:
            _write_then_rename(transformed, destination, format_, overwrite=overwrite)
        return int(observation.get["rows"])


def _write_to_s3(frame: DataFrame, destination: str, format_: str, *, overwrite: bool) -> None:
    from pyspark.sql import functions as f

    from txnctl.pipelines import s3_export

    header = ""
    if format_ == "csv":
        header = ",".join(frame.columns)
        frame = frame.select(f.to_csv(f.struct(*frame.columns), {**_CSV, "header": "false"}).alias("value"))
    s3_export.write(frame, destination, format_, overwrite=overwrite, header=header)


def _write_then_rename(frame: DataFrame, destination: str, format_: str, *, overwrite: bool) -> None:
    """Write beside the destination, and rename when complete."""
    path = os.path.abspath(destination)
    try:
        # A directory of this user alone: Spark would follow a link that a different user put beside the destination.
        os.makedirs(os.path.dirname(path), exist_ok=True)
        private = mkdtemp(prefix=f"{_PARTIAL}-", dir=os.path.dirname(path))
    except OSError as error:
        raise InvalidValue(f"cannot write {destination!r}: {error.strerror}", path=destination) from error
    partial, replaced = os.path.join(private, "partial"), os.path.join(private, "replaced")
    try:
        _write(frame, files.uri_to_write(partial), format_, "error")
        if not overwrite:
            # A concurrent process may have created the destination meanwhile.
            files.check_absent(destination)
        elif os.path.lexists(path):
            os.rename(path, replaced)
        try:
            os.rename(partial, path)
        except BaseException as error:
            with suppress(FileNotFoundError):
                os.rename(replaced, path)
            if os.path.isdir(partial):
                raise
            raise InvalidValue(
                f"the files of {destination!r} were written on a different host, by a process of Spark",
                hint="Name a directory that Spark and this host reach, as s3://bucket/directory.",
                path=path,
            ) from error
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _write(frame: DataFrame, uri: str, format_: str, mode: str) -> None:
    if format_ == "parquet":
        write_parquet(frame, uri, mode)
    elif format_ == "json":
        write_json_lines(frame, uri, mode)
    else:
        frame.write.mode(mode).options(**_CSV).csv(uri)


def read_topic(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Read a topic, with the options of `format("txnctl")`."""
    with as_txnctl_errors():
        return spark.read.format("txnctl").options(**options).load()


def _message_fields() -> list[Column]:
    """Return the fields of `consume -o ndjson` besides key and value, as far as Spark has their columns."""
    from pyspark.sql import functions as f

    index = f.when(f.col("batchIndex") >= 0, f.col("batchIndex"))
    return [
        f.concat_ws(":", "ledgerId", "entryId", index).alias("messageId"),
        f.col("properties"),
        f.unix_millis("eventTime").alias("eventTimeMs"),
        f.unix_millis("deliveryTime").alias("deliveryTimeMs"),
        f.col("publishTime").alias("publishTimeAt"),
        f.unix_millis("publishTime").alias("publishTimeMs"),
        f.col("txnId"),
        f.col("txnState"),
    ]


def _is_text(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(name).isNull() | f.is_valid_utf8(f.col(name).cast("string"))


def _text(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.when(_is_text(name), f.col(name).cast("string"))


def _base64(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.when(~_is_text(name), f.base64(name))
