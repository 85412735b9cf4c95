"""Every example in README and docs runs: shell blocks in bash, Python blocks as scripts, one directory a page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EACH_BY_ITSELF = """
import json, sys
for number, text in enumerate(json.loads(sys.argv[1])):
    exec(compile(text, f"block {number}", "exec"), {"__name__": "__main__"})
"""
"""Runs programs with names of their own in one process: what starts a JVM starts one."""

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


def environment(directory: Path) -> dict[str, str]:
    tool = directory / "bin" / "txnctl"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m txnctl "$@"\n')
    tool.chmod(0o755)
    return {
        "PATH": f"{tool.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "JDK_JAVA_OPTIONS": os.environ["JDK_JAVA_OPTIONS"],
        "HOME": str(directory),
        "LANG": "C.UTF-8",
    }


def pages_with_examples() -> Iterator[Any]:
    for page in PAGES:
        text = "".join(text for _, text in blocks(page))
        if page.name in ("CLI.md", "CONTRIBUTING.md", "BENCHMARKS.md") or not text:
            continue
        starts_jvm = "pyspark" in text or "txnctl pipeline" in text
        yield pytest.param(page, marks=pytest.mark.needs_program("java") if starts_jvm else (), id=page.name)


@pytest.mark.parametrize("page", list(pages_with_examples()))
def test_every_block_of_a_page_runs_in_order(page: Path, tmp_path: Path) -> None:
    """A reader who types a page's examples one after the other meets no error."""
    given = environment(tmp_path)
    shell = "\n".join(text for kind, text in blocks(page) if kind == "sh")
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", shell],
        cwd=tmp_path,
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "error:" not in done.stderr
    programs = [text for kind, text in blocks(page) if kind == "python"]
    done = subprocess.run(
        [sys.executable, "-c", EACH_BY_ITSELF, json.dumps(programs)],
        cwd=tmp_path, env=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_readme_has_examples_in_the_shell_and_in_python() -> None:
    """The page that everybody reads first is not left out by a change of its form."""
    kinds = [kind for kind, _ in blocks(ROOT / "README.md")]
    assert kinds.count("sh") >= 5
    assert kinds.count("python") >= 1


def test_the_tour_shows_what_the_readme_says_of_it(tmp_path: Path) -> None:
    """E stops before the open transfer, D has everything, and after the commit E has the rest in order."""
    tour = [text for kind, text in blocks(ROOT / "README.md") if kind == "sh"][:5]
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", "\necho =====\n".join(tour)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    _, _, opened, _, ended = done.stdout.split("=====\n")
    before = ["deposit B1 500", "deposit B2 20"]
    everything = [*before, "withdraw B1 100", "1", "2", "3", "4", "5"]
    lines = opened.splitlines()
    assert lines[: len(before) + len(everything)] == before + everything
    assert "blocked" in opened
    assert ended.splitlines()[-7:] == ["withdraw B1 100", "1", "2", "3", "4", "5", "deposit B2 100"]
    assert "wait behind open transaction 0:1" in done.stderr


def test_the_readme_opens_with_what_the_command_prints(tmp_path: Path) -> None:
    """The drawing at the top is that of the tour's stuck topic, but for the times."""
    page = (ROOT / "README.md").read_text()
    command, _, shown = page.partition("```console\n$ ")[2].partition("```\n")[0].partition("\n")
    tour = [text for kind, text in blocks(ROOT / "README.md") if kind == "sh"][:3]
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", "\n".join([*tour, "echo =====", command])],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert without_times(done.stdout.partition("=====\n")[2]) == without_times(shown)


def without_times(text: str) -> str:
    """The text with each clock time and duration replaced, and the room that their length leaves."""
    return re.sub(r" +as of", " as of", re.sub(r"\d\d:\d\d:\d\dZ|\b\d+m?s\b", "TIME", text))


def test_of_three_leaders_each_has_its_turn(tmp_path: Path) -> None:
    """The tour's leader election: three race for a topic, and every one of them leads once."""
    (race,) = [text for kind, text in blocks(ROOT / "docs" / "TOUR.md") if "producers lead" in text]
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", f"txnctl store init\n{race}"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()[-3:]) == [f"report by {name}" for name in "abc"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A link to a file of the project names one that exists."""
    targets = re.findall(r"\]\((?!https?://)([^)#]+)\)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing
