"""What examples/README.md shows is what happens, played at two terminals."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.terminal import Terminal

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "examples" / "README.md"


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[dict[str, Terminal]]:
    """The first terminal and the second, in a directory that has the examples and the commands, and nothing else."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("txnctl", "-m txnctl"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    found = {name: Terminal(tmp_path, environment) for name in ("first", "second")}
    yield found
    for each in found.values():
        each.close()


@pytest.mark.needs_program("bash", "setsid")
def test_the_two_terminals_show_what_the_page_shows(terminals: dict[str, Terminal]):
    """A reader who types what stands there sees what stands there; the words before each block name the terminal."""
    prose, *blocks = PAGE.read_text().split("```console\n")
    assert blocks
    for block in blocks:
        transcript, _, after = block.partition("```\n")
        terminals[re.findall(r"\b(first|second) terminal", prose)[-1]].play(transcript)
        prose += after
    for each in terminals.values():
        assert each.wait() == 0


def test_links_of_the_page_lead_somewhere():
    """What the page links to is there."""
    targets = re.findall(r"\]\((?!https?://)([^)#]+)\)", PAGE.read_text())
    assert targets
    assert all((PAGE.parent / target).exists() for target in targets)
