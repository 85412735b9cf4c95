"""Man: `txnctl/generate/man.py`."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.txnctl.generated_steps import PAGES
from txnctl.cli.click_commands import Command
from txnctl.generate import __main__ as generate
from txnctl.generate.man import man_page
from txnctl.generate.tree import Page


def without_formatting(text: str) -> str:
    """The words of a rendered page, without escapes, overstrikes and line breaks."""
    return " ".join(re.sub("\x1b\\[[0-9;]*m|.\b", "", text).split())


def rendered(pages: list[Page], directory: Path) -> dict[str, str]:
    """The words of each page by its file name, all rendered by one groff as wide as 200 columns."""
    paths = [directory / f"{page.file_name}.1" for page in pages]
    for page, path in zip(pages, paths, strict=True):
        path.write_text(man_page(page, PAGES))
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-Kutf8", "-rLL=200n", *map(str, paths)],
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    words, found = without_formatting(done.stdout), dict[str, str]()
    heads = [f"{page.file_name.upper()}(1) txnctl manual {page.file_name.upper()}(1)" for page in pages]
    starts = [words.index(head) for head in heads]
    assert starts == sorted(starts)
    for page, start, end in zip(pages, starts, [*starts[1:], len(words)], strict=True):
        found[page.file_name] = words[start:end].strip()
    return found


class TestManPages:
    """Valid roff, with everything in it."""

    @pytest.mark.needs_program("groff")
    def test_groff_has_nothing_to_say(self, tmp_path: Path) -> None:
        """All its warnings are on."""
        made = {name: text for name, text in generate.generated_files().items() if name.startswith("man/")}
        for name, text in made.items():
            (tmp_path / Path(name).name).write_text(text)
        done = subprocess.run(
            [
                "groff",
                "-man",
                "-Tutf8",
                "-Kutf8",
                "-ww",
                "-z",
                *sorted(str(path) for path in tmp_path.iterdir()),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""

    @pytest.mark.needs_program("groff")
    def test_what_groff_renders_is_what_help_says(self, tmp_path: Path) -> None:
        """Usage, options, examples: nothing is eaten by roff, and hyphens can be copied."""
        shown = rendered(PAGES, tmp_path)
        for page in PAGES:
            flat = shown[page.file_name]
            assert f"{page.file_name} - {page.summary}" in flat
            assert f"{page.title} {page.usage}" in flat
            for name, text in page.arguments + page.options(shared=False) + page.options(shared=True):
                assert f"{name} {' '.join(text.replace('`', '').split())}" in flat, page.title
            if isinstance(page.command, Command):
                for example in page.command.examples:
                    for line in example.lines:
                        assert " ".join(line.split()) in flat, page.title

    @pytest.mark.needs_program("groff", "man")
    def test_man_shows_what_groff_renders(self, tmp_path: Path) -> None:
        """The page of the whole, and the longest one."""
        longest = max(PAGES, key=lambda page: len(man_page(page, PAGES)))
        for page in (PAGES[0], longest):
            shown = rendered([page], tmp_path)
            done = subprocess.run(
                ["man", "-l", str(tmp_path / f"{page.file_name}.1")],
                env={
                    **os.environ,
                    "MANWIDTH": "200",
                    "LANG": "C.UTF-8",
                    "LC_ALL": "C.UTF-8",
                    "MAN_KEEP_FORMATTING": "",
                },
                capture_output=True,
                text=True,
                check=True,
            )
            assert without_formatting(done.stdout) == shown[page.file_name]
