"""The place where files lie, on whatever file system: found, opened, and its troubles told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pyarrow import ArrowException, fs

from storage.errors import InvalidValue, OffloadInvalid


class Root(NamedTuple):
    """A directory on some file system, as a task is told of it.

    Attributes:
        uri: of the file system and the directory, as `pyarrow.fs.FileSystem.from_uri` takes it.
    """

    uri: str

    @classmethod
    def of(cls, given: str) -> Root:
        """The root that a user named: a URI, or a path on this machine."""
        return cls(given if "://" in given else Path(os.path.abspath(given)).as_uri())

    def open(self) -> tuple[Any, str]:
        """The file system, and the directory on it.

        Raises:
            InvalidValue: no file system answers to the URI.
        """
        try:
            system, path = fs.FileSystem.from_uri(self.uri)
        except (ArrowException, OSError, ValueError) as error:
            raise InvalidValue(
                f"{self.uri} names no place for files: {error}",
                hint="Give a path, or a URI such as s3://bucket/directory, gs://, abfss://, hdfs://.",
            ) from None
        return system, path.rstrip("/")

    def for_spark(self, path: str) -> str:
        """The address of a file as Spark's own readers take it: without pyarrow's parameters, and S3 as `s3a`."""
        parts = urlsplit(self.uri)
        scheme = "s3a" if parts.scheme == "s3" else parts.scheme
        return f"{scheme}://{parts.netloc}{unquote(parts.path).rstrip('/')}/{path}"


def open_file(root: Root, path: str) -> Any:
    """A file under a root, to be read at any place; what a task does.

    Raises:
        OffloadInvalid: it is not there, or cannot be read.
    """
    system, base = root.open()
    with reported(root.for_spark(path)):
        return system.open_input_file(f"{base}/{path}")


@contextmanager
def reported(where: str) -> Iterator[None]:
    """Say where it was, of what the operating system or a service refuses.

    Raises:
        OffloadInvalid
    """
    try:
        yield
    except FileNotFoundError:
        raise OffloadInvalid(
            f"{where} is not there",
            hint="It was removed, or this machine does not see the place. Plan the read anew, or look at offloadPath.",
        ) from None
    except OSError as error:
        raise OffloadInvalid(
            f"{where} cannot be used: {error}",
            hint="See that the place is there, has room, and lets this user read and write.",
        ) from error
