"""Java, PySpark and PyArrow: found, judged, and asked for in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import ProgramMissing
from txnctl.spark.runtime import java, requirements


def a_java(place: Path, script: str) -> str:
    """A home with a program called java in it."""
    program = place / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(place)


@pytest.fixture
def only_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Nothing of this machine is found."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setattr(java, "_PATTERNS", ())
    return monkeypatch


NEW = "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2"
OLD = "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2"
BARE = "echo 'java.lang.module.FindException: Module jdk.incubator.vector not found' >&2; exit 1"


def test_java_home_comes_before_path_and_an_old_one_is_passed_over(
    only_here: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first that Spark can use is taken, wherever it is."""
    old, new = a_java(tmp_path / "old", OLD), a_java(tmp_path / "new", NEW)
    only_here.setenv("JAVA_HOME", old)
    only_here.setenv("PATH", f"{new}/bin:/usr/bin:/bin")
    found = java.require_java()
    assert (found.home, found.version, found.problem) == (new, 21, "")
    only_here.setenv("JAVA_HOME", new)
    assert java.require_java().home == new


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (OLD, "version 11"),
        (BARE, "it lacks the module"),
        ("exit 3", "it does not start: no output"),
    ],
)
def test_a_java_that_spark_cannot_use_is_named_with_the_reason(
    only_here: pytest.MonkeyPatch, tmp_path: Path, script: str, says: str
) -> None:
    """Exit code 11, and how to get another."""
    only_here.setenv("JAVA_HOME", a_java(tmp_path / "java", script))
    only_here.setenv("PATH", "/usr/bin:/bin") if not Path("/usr/bin/java").exists() else None
    with pytest.raises(ProgramMissing, match=says) as caught:
        java.require_java()
    assert caught.value.exit_code == 11
    assert "openjdk-17-jre-headless" in (caught.value.hint or "")


def test_no_java_at_all(only_here: pytest.MonkeyPatch) -> None:
    """It is said, and it is a row of the list of what is needed."""
    with pytest.raises(ProgramMissing, match="Java is not installed"):
        java.require_java()
    first = requirements.check_all()[0]
    assert (first.what, first.ok, first.version) == ("Java", False, None)
    assert "apt-get install" in (first.hint or "")


@pytest.mark.parametrize(
    ("version", "says"), [(None, "is not installed"), ("4.1.9", "4.1.9 is too old: 4.2")]
)
def test_a_missing_or_old_pyspark_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, version: str | None, says: str
) -> None:
    """Before Java is looked at, with the line to type."""
    monkeypatch.setattr(requirements, "_version", lambda package: version if package == "pyspark" else "99")
    with pytest.raises(ProgramMissing, match=says) as caught:
        requirements.require_all()
    assert "txnctl[spark]" in (caught.value.hint or "")


@pytest.mark.needs_program("java")
def test_what_is_here_will_do() -> None:
    """The machine that runs these tests has all of it."""
    assert [row.what for row in requirements.check_all() if row.ok] == ["Java", "PySpark", "PyArrow"]
