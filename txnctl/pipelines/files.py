"""URIs of files for Spark. The exact name of an existing file wins over its reading as a pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import glob

from storage.errors import AlreadyExists, InvalidValue
from txnctl.spark import file_systems
from txnctl.spark.file_systems import is_uri

FORMATS = ("csv", "json", "parquet")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_GLOB = re.compile(r"([\\*?\[\]{}])")


def uri_to_write(path: str) -> str:
    """Return the URI of a path for Spark to write to."""
    return file_systems.spark_uri(path) if is_uri(path) else "file://" + os.path.abspath(path)


def uri_to_read(path: str) -> str:
    """Return the URI of a file or directory for Spark to read; a pattern stays a pattern.

    Raises:
        InvalidValue: no such file.
    """
    if is_uri(path):
        return file_systems.spark_uri(path)
    if os.path.exists(path):
        # Escape pattern characters, because a file with this exact name exists.
        return "file://" + _GLOB.sub(r"\\\1", os.path.abspath(path))
    if _GLOB.search(path):
        return "file://" + os.path.abspath(path)
    raise InvalidValue(f"cannot read {path!r}: there is no such file or directory", path=path)


def input_files(path: str) -> list[str]:
    """Return the files that a path, directory or pattern names, in the order of their names.

    Of a directory those whose names begin with neither `.` nor `_`, also in directories below.

    Raises:
        InvalidValue: no such file, or none in the directory.
    """
    if is_uri(path) and not os.path.exists(path):
        names = _remote_files(path)
    else:
        uri_to_read(path)
        places = [path] if os.path.exists(path) else sorted(glob(path))
        # Tasks may run in a different directory.
        names = [os.path.abspath(name) for place in places for name in _local_files(place)]
    if not names:
        shown = file_systems.without_secrets(path)
        raise InvalidValue(f"cannot read {shown!r}: there is no file", path=shown)
    return names


def _local_files(place: str) -> Iterator[str]:
    if not os.path.isdir(place):
        yield place
        return
    for directory, below, names in os.walk(place):
        below[:] = sorted(name for name in below if name[0] not in "._")
        yield from (os.path.join(directory, name) for name in sorted(names) if name[0] not in "._")


def _remote_files(uri: str) -> list[str]:
    from pyarrow import ArrowInvalid, fs

    try:
        system, place = file_systems.open_file_system(uri)
        if system.get_file_info(place).type is not fs.FileType.Directory:
            return [uri]
        listed = system.get_file_info(fs.FileSelector(place, recursive=True))
    except (ArrowInvalid, OSError) as error:
        shown = file_systems.without_secrets(uri)
        raise InvalidValue(f"cannot read {shown!r}: {error}", path=shown) from None
    scheme = uri[: uri.index(place)] if place in uri else file_systems.arrow_uri(uri).split("://")[0] + "://"
    parameters = file_systems.parameters(uri)
    return sorted(
        scheme + info.path + parameters
        for info in listed
        if info.type is fs.FileType.File and info.base_name[0] not in "._"
    )


def is_compressed(path: str) -> bool:
    """Report whether the name of a file says that it is compressed: such a file is read from its beginning on."""
    return file_systems.without_secrets(path).lower().endswith(COMPRESSED)


def size_of(path: str) -> int:
    """Return the bytes of a file of any file system that PyArrow reaches."""
    if not is_uri(path):
        return os.stat(path).st_size
    system, place = file_systems.open_file_system(path)
    return int(system.get_file_info(place).size)


def format_of(path: str) -> str:
    """Return the format by the ending of a file name, compressed files included.

    Raises:
        InvalidValue
    """
    name = file_systems.without_secrets(path).rstrip("/").lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    format_ = _ENDINGS.get(os.path.splitext(name)[1])
    if format_ is None:
        raise InvalidValue(
            f"the name of {file_systems.without_secrets(path)!r} does not tell the format of the file",
            hint=f"Give --format {'|'.join(FORMATS)}.",
            path=file_systems.without_secrets(path),
        )
    return format_


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
