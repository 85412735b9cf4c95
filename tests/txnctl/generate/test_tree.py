"""Tree: `txnctl/generate/tree.py`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from storage import Store
from tests.txnctl.generated_steps import CHECKOUT, PAGES
from tests.txnctl.preparations import prepare
from tests.txnctl.spark.job_examples import TITLES
from txnctl.cli.click_commands import Argument, Command, GroupCommand, Option
from txnctl.cli.command_table import COMMANDS
from txnctl.cli.declaration import EFFECTS, Group
from txnctl.generate.tree import Page, examples, pages
from txnctl.output.escape import printable

COMMAND_PAGES = [page for page in PAGES if isinstance(page.command, Command)]


def names(page: Page) -> str:
    """The id of a test."""
    return page.title


BESIDE_SPARK = [(title, example) for title, example in examples() if title not in TITLES]


class TestTree:
    """What every command must have."""

    @pytest.mark.parametrize("page", COMMAND_PAGES, ids=names)
    def test_every_command_says_what_it_does_and_shows_an_example(self, page: Page) -> None:
        """Effect, a first line that is a sentence, an example of itself."""
        assert isinstance(page.command, Command)
        assert page.command.declaration.effect in EFFECTS
        first = page.paragraphs[0].splitlines()
        assert len(first) == 1
        assert first[0].endswith(".")
        assert len(first[0]) <= 100
        lines = [line for example in page.command.examples for line in example.lines]
        assert any(page.title in line for line in lines), "no example"

    @pytest.mark.parametrize("page", PAGES, ids=names)
    def test_every_parameter_is_explained(self, page: Page) -> None:
        """In a line that ends properly, and is harmless."""
        for parameter in page.command.get_params(page.context):
            assert isinstance(parameter, (Argument, Option))
            assert parameter.help, parameter.name
            assert parameter.help.rstrip().endswith((".", "]", "`", "?", ")")), parameter.help
            assert printable(parameter.help) == parameter.help

    @pytest.mark.parametrize("page", COMMAND_PAGES, ids=names)
    def test_fields_are_declared_once_and_name_one(self, page: Page) -> None:
        """camelCase, and `-o name` prints one of them."""
        assert isinstance(page.command, Command)
        output = page.command.declaration.output
        if output is None:
            return
        found = [field.name for field in output.fields]
        assert len(found) == len(set(found))
        assert output.name_field in found
        for field in output.fields:
            assert re.fullmatch(r"[a-z][a-zA-Z0-9]*", field.name), field.name
            assert field.help.endswith(".")
            if field.kind == "time":
                assert field.name.endswith("At"), field.name
            if field.kind in ("timeMs", "duration"):
                assert field.name.endswith("Ms"), field.name

    @pytest.mark.parametrize("page", COMMAND_PAGES, ids=names)
    def test_destroying_commands_can_be_tried(self, page: Page) -> None:
        """--dry-run and --reason where something is destroyed; --yes wherever something is changed."""
        assert isinstance(page.command, Command)
        taken = {name for parameter in page.command.params for name in parameter.opts}
        if page.command.declaration.effect == "destroys":
            assert {"--dry-run", "--reason"} <= taken
        if page.command.declaration.effect != "reads":
            assert "--yes" in taken
        else:
            assert not {"--yes", "--dry-run", "--force"} & taken

    def test_the_table_of_the_root_says_what_the_commands_say(self) -> None:
        """The summaries stand there so that nothing has to be loaded: they must not drift."""
        for name, (place, summary) in COMMANDS.items():
            page = next(page for page in PAGES if page.path == ("txnctl", name))
            assert page.command.get_short_help_str(200) == summary, place
            if isinstance(page.command, GroupCommand):
                self.check_elsewhere(page.command.table)

    def check_elsewhere(self, group: Group) -> None:
        """The same for commands of a group that live in other modules."""
        for name, (_, summary) in group.elsewhere.items():
            page = next(page for page in PAGES if page.path == ("txnctl", group.name, name))
            assert page.command.get_short_help_str(200) == summary

    @pytest.mark.parametrize("page", PAGES, ids=names)
    def test_help_works_and_fits(self, run: Any, page: Page) -> None:
        """-h anywhere, no line wider than a terminal but for what must not be broken."""
        outcome = run(*page.path[1:], "-h")
        assert (outcome.status, outcome.err) == (0, "")
        assert outcome.out.startswith(f"Usage: {page.title} ")
        assert outcome.out == run(*page.path[1:], "--help").out


class TestExamples:
    """Every example in help runs; those of jobs on Spark where there is a session (tests/txnctl/spark/test_job_examples.py)."""

    @pytest.mark.parametrize(
        "example",
        [
            pytest.param(example, marks=pytest.mark.needs_program("java"))
            if title.startswith("txnctl pipeline")
            else example
            for title, example in BESIDE_SPARK
        ],
        ids=[f"{title}: {example.lines[0]}" for title, example in BESIDE_SPARK],
    )
    def test_it_ends_as_it_says(
        self, example: Any, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In a shell, after `store init` and its own preparations, with nothing else there."""
        store = tmp_path / "store"
        Store.create(store)
        programs = tmp_path / "bin"
        programs.mkdir()
        command = programs / "txnctl"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m txnctl "$@"\n')
        command.chmod(0o755)
        work = tmp_path / "work"
        work.mkdir()
        monkeypatch.chdir(work)
        monkeypatch.setenv("TXNCTL_STORE", str(store))
        environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
        }
        bash = shutil.which("bash") or "sh"
        lines = "\n".join([*prepare(example, run), *example.lines[:-1]])
        script_text = f"set -e\n{lines}\nset +e\n{example.lines[-1]}\n"
        done = subprocess.run(
            [bash, "-c", script_text],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == example.exit_code, f"{script_text}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: page.title)
def test_help_fits_a_terminal_of_80_columns(page: Page) -> None:
    """Tables and examples too; a long example goes on after a backslash."""
    formatter = click.HelpFormatter(width=78)
    page.command.format_help(page.context, formatter)
    assert [line for line in formatter.getvalue().splitlines() if len(line) > 80] == []
