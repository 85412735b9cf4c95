"""Where a job writes: the URI, and that nothing is written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import AlreadyExists
from txnctl.pipelines.files import check_absent, uri_to_write
from txnctl.spark.file_systems import is_uri


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("s3a://b/x", True),
        ("file:/x", True),
        ("HDFS://x", True),
        ("/x", False),
        ("x:y", False),
        ("c/x", False),
    ],
)
def test_a_uri_names_its_file_system(path: str, is_one: bool) -> None:
    """It is passed on as it stands."""
    assert is_uri(path) is is_one
    if is_one:
        assert uri_to_write(path) == path


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """A link that leads nowhere neither; where Spark looks itself, it is left to it."""
    check_absent(str(tmp_path / "new"))
    check_absent("gs://b/x")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(AlreadyExists):
        check_absent(str(tmp_path / "link"))
