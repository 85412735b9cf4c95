"""The root of offloaded files on any file system: parsed, opened, and its failures raised as `OffloadInvalid`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pyarrow import ArrowException

from storage.errors import InvalidValue, OffloadInvalid
from txnctl.spark.file_systems import is_uri, open_file_system, spark_uri, without_secrets


class Root(NamedTuple):
    """A directory on some file system; a value that tasks receive.

    Attributes:
        uri: of the file system and the directory.
    """

    uri: str

    @classmethod
    def of_path(cls, given: str) -> Root:
        """Parse the root that a user gave: a URI, or a path on this machine."""
        return cls(given if is_uri(given) else Path(os.path.abspath(given)).as_uri())

    @property
    def shown(self) -> str:
        """The address of the directory, for messages."""
        return without_secrets(self.uri).rstrip("/")

    def open_filesystem(self) -> tuple[Any, str]:
        """Return the file system, and the directory on it.

        Raises:
            InvalidValue: no file system for the URI.
        """
        try:
            system, path = open_file_system(self.uri)
        except (ArrowException, OSError, ValueError) as error:
            raise InvalidValue(
                f"{self.shown} is not a directory of a known file system: {error}",
                hint="Give a path, or a URI such as s3://bucket/directory, gs://, abfss://, hdfs://.",
            ) from None
        return system, path.rstrip("/")

    def check_exists(self) -> None:
        """See that the directory is there: a mistyped one would pass for one that nothing was offloaded to.

        Raises:
            InvalidValue: no file system for the URI.
            OffloadInvalid: no directory, or none that can be reached.
        """
        from pyarrow import fs

        system, path = self.open_filesystem()
        where = self.shown
        with errors_of(where):
            kind = system.get_file_info(path or "/").type
        if kind != fs.FileType.Directory:
            why = "does not exist" if kind == fs.FileType.NotFound else "is no directory"
            raise OffloadInvalid(
                f"{where} {why}", hint="Name the directory that the ledgers were offloaded to."
            )

    def for_spark(self, path: str) -> str:
        """Return the address of a file for Spark's own readers: without pyarrow's parameters, and S3 as `s3a`."""
        parts = urlsplit(spark_uri(self.uri))
        return f"{parts.scheme}://{parts.netloc}{unquote(parts.path).rstrip('/')}/{path}"


def open_file(root: Root, path: str) -> Any:
    """Open a file under a root for reads at any offset, in a task.

    Raises:
        OffloadInvalid: the file is missing or unreadable.
    """
    system, base = root.open_filesystem()
    with errors_of(root.for_spark(path)):
        return system.open_input_file(f"{base}/{path}")


@contextmanager
def errors_of(where: str) -> Iterator[None]:
    """Raise errors of the operating system or of a storage service as errors that name the file.

    Raises:
        OffloadInvalid
    """
    try:
        yield
    except FileNotFoundError:
        raise OffloadInvalid(
            f"{where} does not exist",
            hint="The file was removed, or this machine does not reach the directory. Run the read again, or check "
            "offloadPath.",
        ) from None
    except OSError as error:
        raise OffloadInvalid(
            f"{where} cannot be used: {error}",
            hint="Check that the directory exists, has free space, and that this user may read and write.",
        ) from error
