"""Files of a job: their URIs, their formats, and that nothing is written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import AlreadyExists, InvalidValue
from txnctl.pipelines.files import check_absent, format_of, is_uri, uri_to_read, uri_to_write


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
        assert uri_to_read(path) == uri_to_write(path) == path


def test_a_file_is_read_by_its_exact_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it looks like a pattern; a pattern stays one."""
    (tmp_path / "a[1]*.csv").touch()
    monkeypatch.chdir(tmp_path)
    assert uri_to_read("a[1]*.csv") == f"file://{tmp_path}/a\\[1\\]\\*.csv"
    assert uri_to_read("*.csv") == f"file://{tmp_path}/*.csv"
    with pytest.raises(InvalidValue, match="there is no such file"):
        uri_to_read("missing.csv")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.csv", "csv"),
        ("a.TSV.GZ", "csv"),
        ("dir/a.jsonl/", "json"),
        ("a.ndjson.zst", "json"),
        ("s3://b/a.parquet", "parquet"),
    ],
)
def test_the_ending_tells_the_format(path: str, found: str) -> None:
    """Compressed or not, a file or a directory."""
    assert format_of(path) == found


@pytest.mark.parametrize("path", ["a", "a.gz", "a.txt", ".csv/", "/"])
def test_an_ending_that_tells_nothing_is_an_error(path: str) -> None:
    """The hint names the formats."""
    with pytest.raises(InvalidValue) as refused:
        format_of(path)
    assert refused.value.hint == "Give --format csv|json|parquet."


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """A link that leads nowhere neither; where Spark looks itself, it is left to it."""
    check_absent(str(tmp_path / "new"))
    check_absent("gs://b/x")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(AlreadyExists):
        check_absent(str(tmp_path / "link"))
