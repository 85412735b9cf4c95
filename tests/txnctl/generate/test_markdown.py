"""Markdown: `txnctl/generate/markdown.py`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.txnctl.generated_steps import CHECKOUT, PAGES
from txnctl.cli.complete import SCRIPTS
from txnctl.cli.exit_codes import MEANINGS
from txnctl.generate import __main__ as generate


class TestGeneratedFiles:
    """Committed, and what `make generate` would write."""

    def test_no_file_is_stale(self) -> None:
        """After a change to a command: make generate."""
        assert generate.stale_files(CHECKOUT) == []

    def test_one_page_for_each_command(self) -> None:
        """And one for the whole."""
        made = generate.generated_files()
        assert {f"man/{page.file_name}.1" for page in PAGES} <= set(made)
        assert "man/txnctl.1" in made
        assert {f"completions/{name}" for name in SCRIPTS.values()} <= set(made)

    def test_staleness_is_seen_and_mended(self, tmp_path: Path) -> None:
        """Missing, changed and left-over files."""
        (tmp_path / "docs").mkdir()
        (tmp_path / "man").mkdir()
        (tmp_path / "man" / "txnctl-gone.1").write_text("old")
        assert set(generate.stale_files(tmp_path)) == {*generate.generated_files(), "man/txnctl-gone.1"}
        generate.write_stale_files(tmp_path)
        assert generate.stale_files(tmp_path) == []
        assert not (tmp_path / "man" / "txnctl-gone.1").exists()
        (tmp_path / "docs" / "CLI.md").write_text("changed")
        assert generate.stale_files(tmp_path) == ["docs/CLI.md"]

    def test_the_check_tells_by_its_exit_code(self, capsys: pytest.CaptureFixture[str]) -> None:
        """For make and CI."""
        assert generate.main(["--check"]) == (1 if generate.stale_files(CHECKOUT) else 0)
        assert generate.main(["--nonsense"]) == 2
        assert "usage" in capsys.readouterr().err

    def test_the_page_names_every_command_and_exit_code(self) -> None:
        """docs/CLI.md has a chapter for each, and its contents point at them."""
        text = generate.generated_files()["docs/CLI.md"]
        chapters = set(re.findall(r"^#+ (txnctl .*)$", text, re.MULTILINE))
        assert chapters == {page.title for page in PAGES if len(page.path) > 1}
        links = set(re.findall(r"\(#([a-z-]+)\)", text))
        assert links == {page.file_name for page in PAGES if len(page.path) > 1}
        for code in MEANINGS:
            assert f"| `{code}` |" in text

    def test_the_same_on_every_machine(self) -> None:
        """Neither the width of the terminal nor the environment shows."""
        program = "import sys; from txnctl.generate.__main__ import generated_files; print(sorted(generated_files().items()))"
        seen = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "COLUMNS": columns, "HOME": home, "LANG": language},
                cwd=CHECKOUT,
                capture_output=True,
                check=True,
            ).stdout
            for columns, home, language in (("40", "/a", "C"), ("200", "/b", "cs_CZ.UTF-8"))
        }
        assert len(seen) == 1
