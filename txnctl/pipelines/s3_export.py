"""Files of an export on S3, written by the tasks through PyArrow: no jars, and nothing is seen before all is written.

    DEST/_partial-<token>/part-<partition>-<attempt>.<ending>   while the job runs
    DEST/part-<partition>-<token>.<ending>, DEST/_SUCCESS       once it has ended

S3 knows no rename of a directory. Tasks write below a name that readers pass over; then the driver removes the former
content of DEST, if that is asked for, moves the files of the tasks that succeeded, each by a copy within S3, and writes
`_SUCCESS` last. A job that is killed before leaves DEST unchanged, and a partial directory, which an export to DEST
removes a day later; a job that is killed while moving files leaves files without `_SUCCESS`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from storage.errors import AlreadyExists, InvalidValue, TxnctlError
from txnctl.spark.file_systems import open_file_system, without_secrets
from txnctl.spark.runtime.hints import hints_as_notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

SUCCESS: Final = "_SUCCESS"
_PARTIAL: Final = "_partial-"
_ORPHAN_MS: Final = 24 * 3600 * 1000
_COPY_BYTES_MAX: Final = 5 << 30
"""S3 copies no larger object in one request: a larger one is read and written."""
_BLOCK_BYTES: Final = 16 << 20
_MOVES_AT_ONCE: Final = 8
_ENDINGS: Final = {"parquet": ".snappy.parquet", "csv": ".csv", "json": ".json"}


@dataclass(frozen=True)
class WrittenFile(WriterCommitMessage):
    """The commit message of a task: the file, by its partition and its path below DEST; None without rows."""

    partition: int
    path: str | None


class S3Destination:
    """A directory on S3.

    Attributes:
        shown: the URI, for messages.
    """

    def __init__(self, uri: str) -> None:
        """Open the file system.

        Raises:
            InvalidValue: the URI names no directory in a bucket.
        """
        import pyarrow as pa

        self.shown = without_secrets(uri)
        try:
            self.system, self.root = open_file_system(uri)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidValue(f"{self.shown} is no directory on S3: {error}", path=self.shown) from None
        self.root = self.root.rstrip("/")
        if "/" not in self.root:
            raise InvalidValue(
                f"{self.shown} is a whole bucket", hint="Name a directory in the bucket.", path=self.shown
            )

    def files(self) -> list[Any]:
        """The files below the directory, files of partial directories included."""
        from pyarrow import fs

        infos = self.system.get_file_info(fs.FileSelector(self.root, recursive=True, allow_not_found=True))
        return [info for info in infos if info.type is fs.FileType.File]

    def content(self) -> list[Any]:
        """The files that a reader sees."""
        return [info for info in self.files() if not self.below(info).startswith(_PARTIAL)]

    def below(self, info: Any) -> str:
        """The path of a file below the directory."""
        return str(info.path[len(self.root) + 1 :])

    def check_absent(self) -> None:
        """Check that no file is there.

        Raises:
            AlreadyExists
            TxnctlError: S3 cannot be reached.
        """
        try:
            names = [self.below(info) for info in self.content()]
        except OSError as error:
            raise self.failure(error) from error
        if names:
            is_whole = SUCCESS in names
            raise AlreadyExists(
                f"{self.shown} exists already" + ("" if is_whole else ", of an export that did not end"),
                hint="--overwrite replaces the files.",
                path=self.shown,
            )

    def publish(self, partial: str, files: Sequence[tuple[str, str]], *, overwrite: bool) -> None:
        """Make the content of the directory: the files of a partial directory, each given with its new name.

        Raises:
            AlreadyExists: the directory has content, which is not to be replaced.
        """
        if not overwrite:
            self.check_absent()
        former = sorted(self.content(), key=lambda info: self.below(info) != SUCCESS)
        for info in former:
            with suppress(FileNotFoundError):
                self.system.delete_file(info.path)
        with ThreadPoolExecutor(_MOVES_AT_ONCE) as pool:
            for moved in [pool.submit(self._move, f"{partial}/{path}", name) for path, name in files]:
                moved.result()
        with self.system.open_output_stream(f"{self.root}/{SUCCESS}"):
            pass
        self.remove(partial)

    def _move(self, path: str, name: str) -> None:
        source, target = f"{self.root}/{path}", f"{self.root}/{name}"
        if self.system.get_file_info(source).size <= _COPY_BYTES_MAX:
            self.system.move(source, target)
            return
        with self.system.open_input_stream(source) as rows, self.system.open_output_stream(target) as copy:
            while block := rows.read(_BLOCK_BYTES):
                copy.write(block)

    def remove(self, partial: str) -> None:
        """Remove a partial directory, as far as S3 can be reached."""
        with suppress(OSError):
            self.system.delete_dir(f"{self.root}/{partial}")

    def remove_orphans(self, now_ms: int) -> None:
        """Remove partial directories without a new file for a day."""
        newest: dict[str, int] = {}
        for info in self.files():
            top = self.below(info).split("/")[0]
            if top.startswith(_PARTIAL):
                newest[top] = max(newest.get(top, 0), (info.mtime_ns or 0) // 1_000_000)
        for partial, time_ms in newest.items():
            if time_ms <= now_ms - _ORPHAN_MS:
                self.remove(partial)

    def failure(self, error: OSError) -> TxnctlError:
        """The error for a failure of S3."""
        return TxnctlError(
            f"cannot use {self.shown}: {error}",
            hint="Credentials, region and endpoint come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and "
            "AWS_ENDPOINT_URL.",
        )


def write(frame: DataFrame, destination: str, format_: str, *, overwrite: bool, header: str = "") -> None:
    """Write the rows as files below a URI of S3.

    Args:
        frame: for `parquet` of the columns of messages or of table rows, for `csv` and `json` of one column of lines.
        format_: one of `parquet`, `csv` and `json`.
        header: the first line of each file; "" for none.

    Raises:
        AlreadyExists
    """
    spark = frame.sparkSession
    spark.dataSource.register(S3Files)
    options = {"destination": destination, "format": format_, "header": header, "overwrite": str(overwrite)}
    frame.write.format(S3Files.name()).mode("append").options(**options).save()


class S3Files(DataSource):
    """The sink of exports to S3; not for programs."""

    @classmethod
    def name(cls) -> str:
        return "txnctl-s3-files"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return S3FilesWriter(self.options, schema)


class S3FilesWriter(DataSourceArrowWriter):
    """Writes a file in each task; moves all files in the driver."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._destination = options["destination"]
        self._format = options["format"]
        self._header = options["header"]
        self._overwrite = options["overwrite"] == "True"
        self._names = schema.fieldNames()
        self._token = token_hex(8)

    @property
    def _partial(self) -> str:
        return f"{_PARTIAL}{self._token}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "Spark runs this in a task"
        partition = context.partitionId()
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return WrittenFile(partition, None)
        with hints_as_notes():
            name = f"part-{partition:05}-{context.taskAttemptId()}{_ENDINGS[self._format]}"
            self._write(f"{self._partial}/{name}", first.schema, chain((first,), batches))
        return WrittenFile(partition, name)

    def _write(self, path: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        """Write one file, which S3 shows once the file is closed; a failed write leaves no file."""
        destination = S3Destination(self._destination)
        try:
            stream = destination.system.open_output_stream(f"{destination.root}/{path}")
            try:
                if self._format == "parquet":
                    _write_parquet(stream, schema, batches)
                else:
                    _write_lines(stream, self._header, batches)
                stream.close()
            except BaseException:
                with suppress(OSError):
                    stream.close()
                with suppress(OSError):
                    destination.system.delete_file(f"{destination.root}/{path}")
                raise
        except OSError as error:
            raise destination.failure(error) from error

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from storage.process.clock import SYSTEM_CLOCK

        written = [message for message in messages if isinstance(message, WrittenFile)]
        ending = _ENDINGS[self._format]
        files = [
            (message.path, f"part-{message.partition:05}-{self._token}{ending}")
            for message in written
            if message.path is not None
        ]
        with hints_as_notes():
            destination = S3Destination(self._destination)
            try:
                if not files and self._format != "json":
                    files = [(f"part-00000{ending}", f"part-00000-{self._token}{ending}")]
                    self._write(f"{self._partial}/{files[0][0]}", self._schema_of_nothing(), iter(()))
                destination.publish(self._partial, files, overwrite=self._overwrite)
                destination.remove_orphans(SYSTEM_CLOCK.wall_ms())
            except OSError as error:
                raise destination.failure(error) from error

    def _schema_of_nothing(self) -> pa.Schema:
        """The columns of a file without a row: the columns of messages or of table rows."""
        from txnctl.spark import schemas

        if self._format != "parquet":
            return schemas.arrow_columns({})
        types = schemas.MESSAGE_TYPES if "ledgerId" in self._names else schemas.ROW_TYPES
        return schemas.arrow_columns({name: types[name] for name in self._names})

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        S3Destination(self._destination).remove(self._partial)


def _write_parquet(stream: Any, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(stream, schema, compression="snappy") as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_lines(stream: Any, header: str, batches: Iterator[pa.RecordBatch]) -> None:
    if header:
        stream.write(f"{header}\n".encode())
    for batch in batches:
        lines = batch.column(0).to_pylist()
        stream.write("".join(f"{line}\n" for line in lines).encode())
