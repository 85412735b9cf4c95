"""The fingerprint of files and options: equal for equal bytes, wherever the files stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import InvalidValue
from txnctl.files.input_parts import InputOptions
from txnctl.files.message_rows import MessageColumns
from txnctl.pipelines import input_fingerprint


def of(*paths: Path, key: str | None = None, skip: bool = False) -> str | None:
    return input_fingerprint.of_files(
        [str(path) for path in paths], MessageColumns(key=key), InputOptions(skip=skip)
    )


def test_bytes_and_options_count_and_names_do_not(tmp_path: Path) -> None:
    """A copy under a different name is the same input; another byte, order or option is not."""
    for name, text in (("a.csv", "a\n1\n"), ("b.csv", "a\n1\n"), ("c.csv", "a\n2\n")):
        (tmp_path / name).write_text(text)
    a, b, c = (tmp_path / f"{name}.csv" for name in "abc")
    assert of(a) == of(b) and str(of(a)).startswith("sha256:")
    different = [of(a), of(c), of(a, c), of(c, a), of(a, b), of(a, key="a"), of(a, skip=True)]
    assert len(set(different)) == len(different)


def test_a_directory_and_a_pattern_are_their_files(tmp_path: Path) -> None:
    """Those that Spark reads: names that begin with a dot or an underscore are left out."""
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / "a.csv").write_text("a\n1\n")
    (tmp_path / "in" / "_SUCCESS").write_text("")
    before = of(tmp_path / "in")
    assert before == of(tmp_path / "in" / "*.csv") == of(tmp_path / "in" / "a.csv")
    (tmp_path / "in" / ".hidden").write_text("x")
    assert of(tmp_path / "in") == before
    (tmp_path / "in" / "below" / "b.csv").write_text("a\n1\n")
    assert of(tmp_path / "in") != before


def test_files_of_another_file_system_have_none_and_missing_ones_are_named(tmp_path: Path) -> None:
    """Their content is compared when they are stored."""
    assert input_fingerprint.of_files(["s3a://bucket/a.csv"], MessageColumns(), InputOptions()) is None
    with pytest.raises(InvalidValue, match="no such file"):
        of(tmp_path / "none.csv")
