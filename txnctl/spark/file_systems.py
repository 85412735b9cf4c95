"""File systems by URI, through PyArrow: staged files, offloaded files, input files and exports read a URI alike.

S3 is `s3://` for PyArrow and `s3a://` for Spark's own readers; both names are taken everywhere. PyArrow takes
credentials, region and endpoint from the variables of AWS (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL`), or
from parameters of the URI.
"""

from __future__ import annotations

import re
from typing import Any

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]+://?", re.IGNORECASE)
_S3 = re.compile(r"^s3[an]?://", re.IGNORECASE)
_PARAMETERS = re.compile(r"\?[a-z_]+=.*$", re.DOTALL)
_SECRET = re.compile(r"//[^/@]*@")


def is_uri(path: str) -> bool:
    """Report whether a path names its file system: `s3a://bucket/x`, `file:/x`."""
    return _SCHEME.match(path) is not None


def is_s3(path: str) -> bool:
    """Report whether a path lies on S3, by any of its schemes."""
    return _S3.match(path) is not None


def open_file_system(uri: str) -> tuple[Any, str]:
    """Return the file system of a URI or of an absolute path, and the path on it.

    Raises:
        pyarrow.ArrowInvalid, OSError, ValueError: no file system for the URI.
    """
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(arrow_uri(uri))
    return system, path


def needs_directories(system: Any) -> bool:
    """Report whether a file needs its directory first. On S3 an empty directory is an object, which nothing removes."""
    return bool(system.type_name != "s3")


def arrow_uri(uri: str) -> str:
    """Return the URI as PyArrow names its file system: `s3` for `s3a` and `s3n`."""
    return _S3.sub("s3://", uri)


def spark_uri(uri: str) -> str:
    """Return the URI as Spark's own readers and writers take it: `s3a` for `s3`, and no parameters of PyArrow."""
    return _S3.sub("s3a://", without_secrets(uri)) if is_s3(uri) else uri


def parameters(uri: str) -> str:
    """Return the parameters of a URI for PyArrow, with the `?`; "" where there are none."""
    match = _PARAMETERS.search(uri) if is_uri(uri) else None
    return match[0] if match else ""


def without_secrets(uri: str) -> str:
    """Return the URI for messages: no user, no password, no parameters."""
    return _SECRET.sub("//", _PARAMETERS.sub("", uri), count=1) if is_uri(uri) else uri
