"""The tree and what is made from it: every command explains itself, and no generated file is stale."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.spark.job_examples import TITLES
from txnctl.cli.click_commands import Argument, Command, GroupCommand, Option
from txnctl.cli.command_table import COMMANDS
from txnctl.cli.complete import SCRIPTS, script
from txnctl.cli.declaration import EFFECTS, Group
from txnctl.cli.exit_codes import MEANINGS
from txnctl.cli.main import root
from txnctl.cli.value_types import TransactionGrammar
from txnctl.generate import __main__ as generate
from txnctl.generate.man import man_page
from txnctl.generate.tree import Page, examples, pages
from txnctl.output.escape import printable

CHECKOUT = Path(__file__).parents[2]
PAGES = list(pages())
COMMAND_PAGES = [page for page in PAGES if isinstance(page.command, Command)]


def names(page: Page) -> str:
    """The id of a test."""
    return page.title


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


BESIDE_SPARK = [(title, example) for title, example in examples() if title not in TITLES]


class TestExamples:
    """Every example in help runs; those of jobs on Spark where there is a session (tests/spark/test_job_examples.py)."""

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
    def test_it_ends_as_it_says(self, example: Any, tmp_path: Path) -> None:
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
        environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
            "TXNCTL_STORE": str(store),
        }
        bash = shutil.which("bash") or "sh"
        lines = "\n".join([*example.setup, *example.lines[:-1]])
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


class TestGeneratedFiles:
    """Committed, and what `make generate` would write."""

    def test_no_file_is_stale(self) -> None:
        """After a change to a command: make generate."""
        assert generate.stale(CHECKOUT) == []

    def test_one_page_for_each_command(self) -> None:
        """And one for the whole."""
        made = generate.files()
        assert {f"man/{page.file_name}.1" for page in PAGES} <= set(made)
        assert "man/txnctl.1" in made
        assert {f"completions/{name}" for name in SCRIPTS.values()} <= set(made)

    def test_staleness_is_seen_and_mended(self, tmp_path: Path) -> None:
        """Missing, changed and left-over files."""
        (tmp_path / "docs").mkdir()
        (tmp_path / "man").mkdir()
        (tmp_path / "man" / "txnctl-gone.1").write_text("old")
        assert set(generate.stale(tmp_path)) == {*generate.files(), "man/txnctl-gone.1"}
        generate.write(tmp_path)
        assert generate.stale(tmp_path) == []
        assert not (tmp_path / "man" / "txnctl-gone.1").exists()
        (tmp_path / "docs" / "CLI.md").write_text("changed")
        assert generate.stale(tmp_path) == ["docs/CLI.md"]

    def test_the_check_tells_by_its_exit_code(self, capsys: pytest.CaptureFixture[str]) -> None:
        """For make and CI."""
        assert generate.main(["--check"]) == (1 if generate.stale(CHECKOUT) else 0)
        assert generate.main(["--nonsense"]) == 2
        assert "usage" in capsys.readouterr().err

    def test_the_page_names_every_command_and_exit_code(self) -> None:
        """docs/CLI.md has a chapter for each, and its contents point at them."""
        text = generate.files()["docs/CLI.md"]
        chapters = set(re.findall(r"^#+ (txnctl .*)$", text, re.MULTILINE))
        assert chapters == {page.title for page in PAGES if len(page.path) > 1}
        links = set(re.findall(r"\(#([a-z-]+)\)", text))
        assert links == {page.file_name for page in PAGES if len(page.path) > 1}
        for code in MEANINGS:
            assert f"| `{code}` |" in text

    def test_the_same_on_every_machine(self) -> None:
        """Neither the width of the terminal nor the environment shows."""
        program = "import sys; from txnctl.generate.__main__ import files; print(sorted(files().items()))"
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


class TestManPages:
    """Valid roff, with everything in it."""

    @pytest.mark.needs_program("groff")
    def test_groff_has_nothing_to_say(self, tmp_path: Path) -> None:
        """All its warnings are on."""
        made = {name: text for name, text in generate.files().items() if name.startswith("man/")}
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

    @pytest.mark.needs_program("man")
    @pytest.mark.parametrize("page", PAGES, ids=names)
    def test_what_man_shows_is_what_help_says(self, page: Page, tmp_path: Path) -> None:
        """Usage, options, examples: nothing is eaten by roff, and hyphens can be copied."""
        path = tmp_path / f"{page.file_name}.1"
        path.write_text(man_page(page, PAGES))
        shown = subprocess.run(
            ["man", "-l", str(path)],
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
        ).stdout
        flat = " ".join(re.sub("\x1b\\[[0-9;]*m|.\b", "", shown).split())
        assert f"{page.file_name} - {page.summary}" in flat
        assert f"{page.title} {page.usage}" in flat
        for name, text in page.arguments + page.options(shared=False) + page.options(shared=True):
            assert f"{name} {' '.join(text.replace('`', '').split())}" in flat
        if isinstance(page.command, Command):
            for example in page.command.examples:
                for line in example.lines:
                    assert " ".join(line.split()) in flat


def completed_in_bash(line: str, environment: dict[str, str], listing: bool = False) -> list[str]:
    """What the bash script offers at the end of this line."""
    program = f"""
source /dev/stdin <<'SCRIPT'
{script("bash")}
SCRIPT
COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE={63 if listing else 9}
_txnctl_completion txnctl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


class TestCompletion:
    """Names of commands, options, topics, subscriptions and open transactions."""

    @pytest.fixture
    def environment(self, tmp_path: Path) -> dict[str, str]:
        """A store with two topics and an open transaction, and txnctl on the path."""
        path = str(tmp_path / "s")
        Store.create(path)
        with Store.open(path) as store:
            store.create_topic("orders")
            store.create_topic("payments")
            store.subscribe("orders", "billing").close()
            store.begin_transaction(timeout=600)
            store.open_session("payments", producer_name="loader")
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin" / "txnctl"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m txnctl "$@"\n')
        program.chmod(0o755)
        return {
            **os.environ,
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
            "TXNCTL_STORE": path,
        }

    @pytest.mark.needs_program("bash")
    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("txnctl err", ["errors"]),
            ("txnctl errors explain writer", ["writer-busy"]),
            ("txnctl errors list --out", ["--output"]),
            ("txnctl errors list -o n", ["ndjson", "name"]),
            ("txnctl topics stats ", ["orders", "payments"]),
            ("txnctl --color never topics stats ord", ["orders"]),
            ("txnctl subscriptions stats orders ", ["billing"]),
            # Bash replaces what follows the last colon only.
            ("txnctl transactions show 0:", ["1"]),
            ("txnctl txn show ", ["0:1"]),
            ("txnctl consume orders -s ", ["billing"]),
            ("txnctl producers show pay", ["payments"]),
            ("txnctl producers lead ord", ["orders"]),
            ("txnctl produce orders --access-mode wait", ["WaitForExclusive"]),
            (
                "txnctl producers lead orders --access-mode ",
                ["Exclusive", "WaitForExclusive", "ExclusiveWithFencing"],
            ),
        ],
    )
    def test_bash(self, environment: dict[str, str], line: str, offered: list[str]) -> None:
        """Through the script, as the shell calls it."""
        assert completed_in_bash(line, environment) == offered

    @pytest.mark.needs_program("bash")
    def test_bash_shows_what_names_are_only_where_it_lists(self, environment: dict[str, str]) -> None:
        """A description must never be inserted."""
        listed = completed_in_bash("txnctl ", environment, listing=True)
        assert [line.split()[0] for line in listed] == list(COMMANDS)
        assert all("(" in line for line in listed)

    @pytest.mark.needs_program("fish")
    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("txnctl err", ["errors\tList the error codes, explain one."]),
            ("txnctl topics stats or", ["orders"]),
            ("txnctl errors explain writer", ["writer-busy"]),
        ],
    )
    def test_fish(self, environment: dict[str, str], line: str, offered: list[str]) -> None:
        """With what each name is."""
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"{script('fish')}\ncomplete -C {shlex.quote(line)}"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines() == offered

    @pytest.mark.needs_program("zsh")
    @pytest.mark.parametrize(
        ("words", "offered"),
        [
            (("txnctl", "err"), ["errors:List the error codes, explain one."]),
            (("txnctl", "topics", "stats", ""), ["orders", "payments"]),
        ],
    )
    def test_zsh(self, environment: dict[str, str], words: tuple[str, ...], offered: list[str]) -> None:
        """What the script hands to zsh's own functions."""
        program = f"""
compdef() {{ : }}
compadd() {{ print -rl -- ${{(P)@[-1]}} }}
_describe() {{ print -rl -- ${{(P)3}} }}
{script("zsh")}
words=({" ".join(shlex.quote(word) for word in words)}); CURRENT={len(words)}
_txnctl_completion
"""
        done = subprocess.run(
            ["zsh", "-f", "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines() == offered

    @pytest.mark.needs_program("bash", "zsh", "fish")
    def test_the_scripts_are_valid(self, tmp_path: Path) -> None:
        """For each shell, as far as it tells without running them."""
        for shell in SCRIPTS:
            path = tmp_path / shell
            path.write_text(script(shell))
            done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=True)
            assert done.stderr == ""

    def test_the_command_prints_the_committed_script(self, run: Any) -> None:
        """`txnctl completion bash` and completions/txnctl.bash are one."""
        for shell, name in SCRIPTS.items():
            assert run("completion", shell).out == generate.files()[f"completions/{name}"]

    def test_completing_never_fails_nor_creates(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """No store, a broken one, nonsense on the line: nothing is offered, nothing is said."""
        broken = tmp_path / "broken"
        broken.mkdir()
        (broken / "data.mdb").write_bytes(b"nonsense")
        before = sorted(tmp_path.rglob("*"))
        for path in (tmp_path / "none", broken, broken / "data.mdb"):
            monkeypatch.setenv("TXNCTL_STORE", str(path))
            for line in (
                "txnctl topics stats ",
                "txnctl transactions show ",
                "txnctl subscriptions stats x ",
            ):
                monkeypatch.setenv("_TXNCTL_COMPLETE", "bash_complete")
                monkeypatch.setenv("COMP_LINE", line)
                outcome = run()
                assert (outcome.status, outcome.out.strip(), outcome.err) == (0, "", "")
        assert sorted(tmp_path.rglob("*")) == before

    def test_sessions_come_with_name_and_lease(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, environment: Any
    ) -> None:
        """The token, of the topic on the line only; what a process holds is not for others to use."""
        monkeypatch.setenv("TXNCTL_STORE", environment["TXNCTL_STORE"])
        monkeypatch.setenv("_TXNCTL_COMPLETE", "bash_complete")
        with Store.open(environment["TXNCTL_STORE"]) as store, store.create_producer("orders"):
            for line, offered in (
                ("txnctl producers close ", 1),
                ("txnctl produce payments --session ", 1),
                ("txnctl produce orders --session ", 0),
            ):
                monkeypatch.setenv("COMP_LINE", line)
                items = [each for each in run().out.splitlines() if each]
                assert len(items) == offered, line
                for item in items:
                    _, token, help_text = item.split("\t")
                    assert row_json(store.reports.show_session(token))["producerName"] == "loader"
                    assert re.match(r"loader, payments, lease \d+m?\d*s, .+@.+", help_text)

    def test_open_transactions_come_with_age_and_owner(
        self, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So that one knows which it is."""
        import click

        monkeypatch.setenv("TXNCTL_STORE", environment["TXNCTL_STORE"])
        context = click.Context(root(), info_name="txnctl")
        (item,) = TransactionGrammar().shell_complete(context, click.Option(["--txn"]), "0")
        assert item.value == "0:1"
        assert re.match(r"\d+m?s, .+", item.help or ""), item.help
