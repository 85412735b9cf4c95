"""The files of a path: each data file below, or an error by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.errors import InvalidValue
from txnctl.files.listing import format_of, input_files, opened


def names(path: Path | str, top: Path) -> list[str]:
    return [str(Path(name).relative_to(top)) for name in input_files(str(path))]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A directory with files below, and names that are passed over."""
    (tmp_path / "d" / "sub" / "deep").mkdir(parents=True)
    for name in ("a.jsonl", "sub/b.jsonl", "sub/deep/c.jsonl", "_SUCCESS", ".a.crc", "sub/_part"):
        (tmp_path / "d" / name).touch()
    return tmp_path


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}"])
def test_directories_below_are_listed(top: Path, form: str) -> None:
    """By path and by URI; a pattern takes files and directories, and passes over names that are no data."""
    expected = ["d/a.jsonl", "d/sub/b.jsonl", "d/sub/deep/c.jsonl"]
    assert names(form.format(top / "d"), top) == expected
    assert names(top / "d" / "*", top) == expected
    assert names(top / "d" / "s*", top) == expected[1:]
    (top / "_d").mkdir()
    (top / "_d" / "a.jsonl").touch()
    assert names(top / "*" / "a.jsonl", top) == ["d/a.jsonl"]
    assert names(top / "_*" / "a.jsonl", top) == ["_d/a.jsonl"]


def test_patterns_of_a_uri(top: Path) -> None:
    """As on this machine: in the last name, and in directories on the way."""
    assert names(f"file://{top}/d/*", top) == names(top / "d" / "*", top)
    assert names(f"file://{top}/d/*/*.jsonl", top) == ["d/sub/b.jsonl"]
    assert names(f"file://{top}/d/a*", top) == ["d/a.jsonl"]


def test_names_that_spark_cannot_read(top: Path) -> None:
    """A colon, a space, brackets: the exact name of a file wins over a pattern."""
    for name in ("10:15:00.jsonl", "a b.jsonl", "[1]*.jsonl"):
        (top / name).touch()
        assert names(top / name, top) == [name]


def test_links_are_followed_and_a_circle_is_refused(top: Path) -> None:
    """A directory by a link is part of the data; a link to a directory above is named."""
    (top / "more").mkdir()
    (top / "more" / "m.jsonl").touch()
    (top / "d" / "sub" / "link").symlink_to(top / "more")
    assert "d/sub/link/m.jsonl" in names(top / "d", top)
    (top / "more" / "up").symlink_to(top / "d")
    with pytest.raises(InvalidValue, match="/d/sub/link/up' leads back to a directory above"):
        input_files(str(top / "d"))


def test_what_is_no_regular_file_is_refused(top: Path) -> None:
    """A pipe of the shell, a device, a FIFO within a directory: by its name, with a way."""
    read_end, write_end = os.pipe()
    os.mkfifo(top / "d" / "fifo.jsonl")
    for path in (f"/dev/fd/{read_end}", f"/proc/self/fd/{read_end}", "/dev/null", str(top / "d")):
        with pytest.raises(InvalidValue, match="is no regular file") as refused:
            input_files(path)
        assert "produce TOPIC --input ndjson" in str(refused.value.hint)
    os.close(read_end)
    os.close(write_end)


def test_a_file_behind_a_descriptor_has_a_name_for_all_processes(top: Path) -> None:
    """The descriptor is that of this process alone; a link to one is followed too."""
    with (top / "d" / "a.jsonl").open() as file:
        assert names(f"/dev/fd/{file.fileno()}", top) == ["d/a.jsonl"]
        (top / "in").symlink_to(f"/dev/fd/{file.fileno()}")
        assert names(top / "in", top) == ["d/a.jsonl"]


def test_a_partition_is_refused_by_its_column(top: Path) -> None:
    """The column stands in no file; the hint reads the files without."""
    (top / "p" / "year=2024").mkdir(parents=True)
    (top / "p" / "year=2024" / "a.jsonl").touch()
    for form in ("{}/p", "file://{}/p"):
        with pytest.raises(InvalidValue, match="do not have the column year") as refused:
            input_files(form.format(top))
        assert f"{top}/p/year=*" in str(refused.value.hint)
    assert names(top / "p" / "year=*", top) == ["p/year=2024/a.jsonl"]


def test_missing_and_unreadable_names(top: Path) -> None:
    """No such file, an empty directory, a link that leads nowhere, a pattern without a match."""
    (top / "none").mkdir()
    for path, says in (
        ("missing.csv", "no such file"),
        ("none", "there is no file"),
        ("*.csv", "there is no file"),
    ):
        with pytest.raises(InvalidValue, match=says):
            input_files(str(top / path))
    (top / "d" / "z.jsonl").symlink_to("nowhere")
    with pytest.raises(InvalidValue, match=r"z\.jsonl': No such file"):
        input_files(str(top / "d"))


def test_what_only_hadoop_decompresses_is_refused(tmp_path: Path) -> None:
    """By the name; a file that ends too soon is named as well."""
    for name, data in (("a.csv.snappy", b"x"), ("a.json.deflate", b"x")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InvalidValue, match=f"{name}' is compressed in blocks"):
            opened(str(tmp_path / name))


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
