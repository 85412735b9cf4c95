"""The long forms: each has a short form in the gate, and `make nightly` runs all of them, goes on after a cut, and judges."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests import conftest
from tests.nightly import HOURS, PAGE, PARTS, ROOT, Night, Part
from tests.waiting import wait_for

MAKEFILE = (ROOT / "Makefile").read_text()
SHORT = [
    "check",
    "clean",
    "demo",
    "figures",
    "format",
    "generate",
    "generated",
    "help",
    "hooks",
    "imports",
    "lint",
    "lock",
    "nightly",
    "picture",
    "pytest",
    "pytest-postgres",
    "test",
    "types",
]
"""Targets of the Makefile that end within minutes, or run all long ones."""
GOOD = Part("good", "good", "SIZE={}", 10, 1, "ends", "", least=2)
BAD = Part("bad", "bad", "", 1, 1, "ends", "")
LAST = Part("last", "last", "", 1, 1, "ends", "", shows="figure")
TARGETS = """
.PHONY: good bad last hanging
good:
	echo good $(SIZE) >> runs
bad:
	@echo the cause; exit 3
last:
	@echo last >> runs; echo noise; echo a figure; echo more noise
hanging:
	@echo hanging > started; while :; do sleep 1; done
"""


def recipe(target: str) -> str:
    """The recipe of a target of the Makefile."""
    (lines,) = re.findall(rf"^{target}:.*##.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return str(lines)


def long_targets() -> list[str]:
    """The long forms that the Makefile names."""
    (names,) = re.findall(r"^LONG := ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    return str(names).replace("\\", "").split()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a Makefile of small parts."""
    (tmp_path / "Makefile").write_text(TARGETS)
    (tmp_path / ".gitignore").write_text("/build\n/runs\n/started\n")
    for words in ("init -q", "add .", "-c user.name=x -c user.email=x@x commit -q -m first"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    return tmp_path


def runs(checkout: Path) -> list[str]:
    return (checkout / "runs").read_text().splitlines()


class TestShortForms:
    """Every long form has a short one."""

    def test_each_target_of_the_makefile_is_short_or_a_part_of_the_night(self) -> None:
        """A new target is one or the other."""
        targets = re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE)
        assert sorted(targets) == sorted([*SHORT, *long_targets()])
        assert {part.target for part in PARTS} == set(long_targets())

    @pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
    def test_each_part_has_a_short_form_that_runs_the_same_code(self, part: Part) -> None:
        """The test is there, and its file names the module or the file of tests that the recipe of the target runs.

        The short form of the run on a server is a part of it, which `make test` runs itself.
        """
        if part.target == "test-postgres":
            assert "tests.server_run" in recipe("test") and "--part" in recipe("test")
            return
        name, _, function = part.short.partition("::")
        text = (ROOT / name).read_text()
        assert f"def {function}(" in text
        (program,) = re.findall(
            r"-m (?!pytest)([\w.]+)|(tests/\S+\.py)|-m (crash_sweep)", recipe(part.target)
        )
        code = next(filter(None, program))
        package, _, module = code.rpartition(".")
        assert (
            any(word in text for word in (code, f"import {module}", f"from {package or code}"))
            or name == code
        )

    @pytest.mark.parametrize("part", [part for part in PARTS if part.setting], ids=lambda part: part.name)
    def test_the_factor_reaches_the_program(self, part: Part) -> None:
        """The recipe hands on each variable of the setting, the size among them."""
        assert "{}" in part.setting
        names = [word.partition("=")[0] for word in part.setting.split()]
        assert [name for name in names if f"$({name})" not in recipe(part.target)] == []

    @pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
    def test_no_short_form_is_left_out_of_the_complete_check(self, part: Part) -> None:
        """`make test` selects by no marker."""
        assert "-m 'not" not in recipe("test")
        assert "-m 'not" not in recipe("pytest")
        assert not hasattr(conftest, "collect_ignore") or part.short not in conftest.collect_ignore

    def test_all_parts_together_end_within_the_hours_of_a_night(self) -> None:
        """The minutes of the parts are those measured on two cores."""
        assert sum(part.minutes for part in PARTS) <= HOURS * 60


class TestRun:
    """A night of small parts, with the real make."""

    def test_all_parts_run_and_a_broken_one_ends_the_night_non_zero(self, checkout: Path) -> None:
        """The parts behind the broken one run as well; the page has sizes, outcomes, the commit and the figures."""
        assert Night(checkout, (GOOD, BAD, LAST), 0.5).run() == 1
        assert runs(checkout) == ["good 5", "last"]
        page = (checkout / PAGE).read_text()
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True
        ).stdout
        assert commit[:12] in page
        assert "| good | 5 | ends | held |" in page
        assert "| **BROKEN: exit code 2** |" in page
        assert "the cause" in page
        assert "a figure" in page and "noise" not in page

    def test_a_second_call_runs_the_parts_without_a_result(self, checkout: Path) -> None:
        """A result is kept over a commit of documents; a commit of code, and a different factor, begin anew."""
        assert Night(checkout, (GOOD,), 1).run() == 0
        assert Night(checkout, (GOOD, LAST), 1).run() == 0
        assert runs(checkout) == ["good 10", "last"]
        (checkout / "a.md").write_text("text")
        commit(checkout)
        assert Night(checkout, (GOOD, LAST), 1).run() == 0
        assert runs(checkout) == ["good 10", "last"]
        assert Night(checkout, (GOOD,), 0.1).run() == 0
        (checkout / "code.py").write_text("1")
        assert Night(checkout, (), 1).changes() == ""
        commit(checkout)
        assert Night(checkout, (GOOD,), 1).run() == 0
        assert runs(checkout) == ["good 10", "last", "good 2", "good 10"]
        (checkout / "code.py").write_text("2")
        assert "code.py" in Night(checkout, (), 1).changes()

    def test_a_broken_part_is_remembered(self, checkout: Path) -> None:
        """A second call does not turn a broken promise into a success."""
        assert Night(checkout, (BAD,), 1).run() == 1
        assert Night(checkout, (BAD,), 1).run() == 1

    def test_a_part_that_hangs_is_ended_and_broken(self, checkout: Path) -> None:
        """All processes of the part are gone, and the next part runs."""

        class Hanging(Part):
            def limit_s(self, factor: float) -> float:
                return 0.5 * factor

        hanging = Hanging("hanging", "hanging", "", 1, 1, "ends", "")
        assert Night(checkout, (hanging, GOOD), 1).run() == 1
        assert "BROKEN: not ended after" in (checkout / PAGE).read_text()
        assert runs(checkout) == ["good 10"]
        wait_for(lambda: processes_in(checkout) == [], "the processes of the part are gone")

    def test_an_interrupt_ends_the_part_and_keeps_no_result(self, checkout: Path) -> None:
        """The next call runs the part again."""
        os.mkfifo(checkout / "started")
        program = (
            "import signal, sys; from pathlib import Path; from tests.nightly import Night, Part\n"
            "signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
            f"Night(Path({str(checkout)!r}), (Part('hanging', 'hanging', '', 1, 1, 'ends', ''),), 1).run()"
        )
        night = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.DEVNULL)
        assert (checkout / "started").read_text() == "hanging\n"
        night.send_signal(signal.SIGTERM)
        assert night.wait() != 0
        wait_for(lambda: processes_in(checkout) == [], "the processes of the part are gone")
        assert list((checkout / "build").rglob("*.json")) == []


def processes_in(place: Path) -> list[str]:
    """The living processes that work in a directory."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            found += [link.parent.name] if link.readlink() == place else []
    return found


def commit(checkout: Path) -> None:
    """Commit all changes."""
    for words in ("add .", "-c user.name=x -c user.email=x@x commit -q -m next"):
        subprocess.run(["git", *words.split()], cwd=checkout, check=True)
