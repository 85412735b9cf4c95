"""Files that jobs write through Spark: Parquet with standard timestamps, and lines of JSON named `.json`.

Spark's writer of text names its files `.txt`. They are renamed before the directory counts as complete.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from txnctl.pipelines.session_settings import STANDARD_TIMESTAMPS, settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOCAL = "file:///"
_TEXT = re.compile(r"\.txt((?:\.\w+)*)$")
_UNMARKED = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
_MARK = "_SUCCESS"


def write_parquet(frame: DataFrame, uri: str, mode: str) -> None:
    """Write Parquet, whose timestamps every reader of Parquet knows."""
    with settings(frame.sparkSession, STANDARD_TIMESTAMPS):
        frame.write.mode(mode).parquet(uri)


def write_json_lines(frame: DataFrame, uri: str, mode: str) -> None:
    """Write the one column of a frame, lines of JSON, to files named `.json`.

    Spark Connect reaches no remote directory beside Spark itself: there the files keep the names that Spark gives.
    """
    jvm = getattr(frame.sparkSession, "_jvm", None)
    if uri.startswith(_LOCAL):
        frame.write.mode(mode).text(uri)
        directory = uri.removeprefix("file://")
        # The server of Spark Connect may have written on a host of its own.
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            os.rename(os.path.join(directory, name), os.path.join(directory, json_name(name)))
    elif jvm is None:
        frame.write.mode(mode).text(uri)
    else:
        frame.write.mode(mode).option(_UNMARKED, "false").text(uri)
        _rename_remote(frame, uri)


def json_name(name: str) -> str:
    """Return the name of a file of text as one of JSON, compression and checksum included: `a.txt.gz`, `.a.txt.crc`."""
    return _TEXT.sub(r".json\1", name)


def _rename_remote(frame: DataFrame, uri: str) -> None:
    """Rename the files by Hadoop's file system, which has written them, and mark the directory as complete."""
    session = frame.sparkSession
    new_path = session._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
    directory = new_path(uri)
    system = directory.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    for status in system.listStatus(directory):
        name = status.getPath().getName()
        if json_name(name) != name:
            system.rename(status.getPath(), new_path(directory, json_name(name)))
    system.create(new_path(directory, _MARK)).close()
