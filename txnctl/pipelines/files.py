"""Where jobs write: URIs for Spark, and that nothing is written over."""

from __future__ import annotations

import os

from storage.errors import AlreadyExists
from txnctl.spark import file_systems
from txnctl.spark.file_systems import is_uri


def uri_to_write(path: str) -> str:
    """Return the URI of a path for Spark to write to."""
    return file_systems.spark_uri(path) if is_uri(path) else "file://" + os.path.abspath(path)


def check_absent(path: str) -> None:
    """Check that no file stands at the path to write; on a file system that only Spark reaches, Spark does so.

    Raises:
        AlreadyExists
        InvalidValue, ProgramMissing: a URI of S3 that cannot be used.
    """
    if file_systems.is_s3(path):
        from txnctl.spark.runtime import requirements

        requirements.require_package("pyarrow")
        requirements.require_package("pyspark")
        from txnctl.pipelines.s3_export import S3Destination

        S3Destination(path).check_absent()
        return
    if not is_uri(path) and os.path.lexists(path):
        raise AlreadyExists(f"{path} exists already", hint="--overwrite replaces the files.", path=path)
