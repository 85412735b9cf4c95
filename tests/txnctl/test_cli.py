"""The tree and its one way in and out: names, help, exit codes, errors, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from storage import Store, errors as storage_errors
from txnctl import __version__
from txnctl.cli import exit_codes
from txnctl.cli.aliases import ALIASES
from txnctl.cli.command_table import COMMANDS
from txnctl.cli.context import Context
from txnctl.cli.declaration import Group, command
from txnctl.cli.decorators import argument, effect, option, output, passes_arguments
from txnctl.output.field import Field

FIELDS = (Field("name", "text", "A name."),)


def failing_with(error: BaseException) -> Any:
    """A command that raises."""

    @command
    @effect("reads")
    @output(FIELDS, name_field="name")
    def fail(context: Context) -> None:
        """Fail."""
        raise error

    return fail


class TestNames:
    """Commands are found by name, alias, or told what is near."""

    @pytest.mark.parametrize("words", [(), ("-h",), ("--help",)])
    def test_help_lists_the_tree_in_the_order_of_the_contract(self, run: Any, words: tuple[str, ...]) -> None:
        """Alone, with -h or --help, txnctl prints its help on standard output and succeeds."""
        outcome = run(*words)
        assert outcome.status == exit_codes.DONE
        assert outcome.err == ""
        listed = [
            line.split()[0]
            for line in outcome.out.partition("Commands:\n")[2].splitlines()
            if line[2:3].strip()
        ]
        assert [name for name in listed if name in COMMANDS] == list(COMMANDS)

    def test_a_bare_group_prints_its_help_and_succeeds(self, run: Any) -> None:
        """`txnctl errors` is no usage error."""
        outcome = run("errors")
        assert outcome.status == 0
        assert "explain" in outcome.out

    def test_an_alias_is_the_command_it_stands_for(self, run: Any) -> None:
        """`errors ls` is `errors list`, and every alias points at something."""
        assert run("errors", "ls", "-o", "json").json == run("errors", "list", "-o", "json").json
        assert {ALIASES["txn"], ALIASES["subs"]} <= set(COMMANDS)

    def test_an_alias_runs_under_the_full_name(self, run: Any, add: Any) -> None:
        """Messages and records name the command as the documentation does."""
        probe = Group("probe", "A probe.")

        @probe.command("list")
        @effect("reads")
        @output(FIELDS, name_field="name")
        def list_(context: Context) -> None:
            """List."""
            context.show({"name": context.program})

        add(probe)
        assert run("probe", "ls", "-o", "name").out == "txnctl probe list\n"

    @pytest.mark.parametrize(
        ("words", "near"),
        [
            (("topcs",), "topics"),
            (("errors", "explan"), "explain"),
            (("trans",), "transactions"),
            (("sub",), "subs"),
            (("verify",), "did you mean txnctl store verify?"),
            (("explain",), "did you mean txnctl transactions explain or txnctl errors explain?"),
            (("fence",), "did you mean txnctl producers fence?"),
            (("ls",), "did you mean a command of topics, subscriptions, "),
        ],
    )
    def test_an_unknown_command_is_told_what_is_near(
        self, run: Any, words: tuple[str, ...], near: str
    ) -> None:
        """Usage errors are exit 2, on standard error alone, and suggest."""
        outcome = run(*words)
        assert outcome.status == exit_codes.USAGE
        assert outcome.out == ""
        assert outcome.err.startswith(
            f"txnctl: error: no such command: txnctl {' '.join(words)}; did you mean "
        )
        assert near in outcome.err

    def test_an_unknown_option_is_told_what_is_near(self, run: Any) -> None:
        """So are unknown options."""
        outcome = run("errors", "list", "--outptu", "json")
        assert outcome.status == 2
        assert "--output" in outcome.err

    def test_help_of_a_command_says_what_it_does_and_shows_examples(self, run: Any) -> None:
        """Effect and examples are part of every help."""
        text = run("errors", "explain", "-h").out
        assert "Reads only: it changes nothing" in text
        assert "Examples:\n  txnctl errors explain writer-busy\n" in text

    def test_version_option(self, run: Any) -> None:
        """--version prints the version alone."""
        assert run("--version").out == f"txnctl {__version__}\n"


class TestLaziness:
    """Start-up is part of the product."""

    def loaded(self, *words: str) -> set[str]:
        """The modules in memory after a command line ran as a process starts it."""
        program = (
            "import sys, os, txnctl.__main__ as start\n"
            "start._leave = lambda status: print(*sys.modules, file=sys.stderr)\n"
            f"sys.argv = ['txnctl', *{words!r}]\n"
            "start.run()\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        return set(done.stderr.split())

    def test_help_loads_no_command(self) -> None:
        """`txnctl --help` knows names and summaries from a table."""
        assert not {name for name in self.loaded("--help") if name.startswith("txnctl.commands.")}

    def test_a_command_loads_no_other_and_nothing_it_does_not_use(self) -> None:
        """Neither tabulate nor what click imports for its rarer features."""
        loaded = self.loaded("errors", "list", "-o", "json")
        assert {name for name in loaded if name.startswith("txnctl.commands.")} == {"txnctl.commands.errors"}
        heavy = {
            "tabulate",
            "ast",
            "difflib",
            "json",
            "importlib.metadata",
            "pathlib",
            "dataclasses",
            "subprocess",
        }
        assert not loaded & heavy

    @pytest.mark.parametrize(
        ("words", "others"),
        [
            (("tables", "get", "accounts", "B1"), set()),
            (("tables", "get", "accounts", "B1", "--check", "none", "-o", "json"), set()),
            (("tables", "get", "accounts", "B1", "--at", "9000000000000000000"), {"retention", "intent"}),
            (("tables", "scan", "accounts", "-o", "value"), set()),
            (("tables", "export", "accounts"), {"intent"}),
        ],
        ids=lambda words: " ".join(words[1:]) if isinstance(words, tuple) else "",
    )
    def test_a_plain_read_of_a_table_loads_nothing_that_writes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], others: set[str]
    ) -> None:
        """No transactions, their coordinator and what takes part in them, nor any table for people."""
        Store.create(tmp_path / "store")
        with Store.open(tmp_path / "store") as store:
            store.create_table("accounts")
            store.table("accounts").put(b"B1", b"1")
        monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "store"))
        loaded = self.loaded(*words)
        assert "storage.client.table_reader" in loaded
        writers = {
            *(
                "storage.client.table_access",
                "storage.client.work.work",
                "storage.client.work.write_set",
                "storage.client.transaction",
                "storage.client.work.handle",
            ),
            *(
                "storage.txn.coordinator",
                "storage.txn.buffer",
                "storage.subscription.pending_ack",
                "tabulate",
            ),
            *("storage.subscription.catalogue", "storage.topic.log", "storage.client.reader"),
            *{f"storage.table.{name}" for name in ("writing", "retention", "intent", "conflict", "push")},
        }
        assert loaded & writers == {f"storage.table.{name}" for name in others}

    def test_a_module_loaded_on_use_is_whole_when_used(self) -> None:
        """What looks into `inspect` finds it, also through names of its own."""
        program = (
            "import sys, txnctl.__main__ as start\n"
            "sys.modules['inspect'] = start._LoadedOnUse('inspect')\n"
            "import inspect; assert 'ast' not in sys.modules\n"
            "from inspect import signature\n"
            "assert str(signature(lambda a: a)) == '(a)' and inspect.cleandoc(' x') == 'x'\n"
            "import inspect as again; assert type(again).__name__ == 'module'\n"
            "start._load_on_use(); import os, platform, uuid\n"
            "from platform import system\n"
            "assert platform.system() == system() == os.uname().sysname == platform.uname().system\n"
            "assert platform.python_version() and str(uuid.UUID(int=1)).endswith('0001')\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True)


class TestSharedOptions:
    """--store and its like, before and after the verb."""

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("--store", "/a", "config", "show"), "/a"),
            (("config", "--store", "/b", "show"), "/b"),
            (("config", "show", "--store", "/c"), "/c"),
            (("--store", "/a", "config", "show", "--store", "/c"), "/c"),
        ],
    )
    def test_the_last_store_on_the_line_counts(self, run: Any, words: tuple[str, ...], expected: str) -> None:
        """Wherever it stands."""
        rows = {row["name"]: row for row in run(*words, "-o", "json").json}
        assert rows["store"]["value"] == expected
        assert rows["store"]["source"] == "option --store"

    def test_an_option_before_the_verb_beats_the_environment(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TXNCTL_STORE stands for --store, it does not override one."""
        monkeypatch.setenv("TXNCTL_STORE", "/from/environment")
        assert self.store(run, "--store", "/typed", "config", "show") == ("/typed", "option --store")
        assert self.store(run, "config", "show") == ("/from/environment", "environment TXNCTL_STORE")

    def test_the_default_store_follows_xdg(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """An empty variable is an unset one, and a relative XDG_DATA_HOME is none."""
        home = os.environ["HOME"]
        monkeypatch.setenv("TXNCTL_STORE", "")
        assert self.store(run, "config", "show") == (f"{home}/.local/share/txnctl/store", "default")
        monkeypatch.setenv("XDG_DATA_HOME", "relative")
        assert self.store(run, "config", "show") == (f"{home}/.local/share/txnctl/store", "default")
        monkeypatch.setenv("XDG_DATA_HOME", "/data")
        assert self.store(run, "config", "show") == ("/data/txnctl/store", "default")

    def store(self, run: Any, *words: str) -> tuple[str, str]:
        """Value and source of the store in `config show`."""
        row = next(row for row in run(*words, "-o", "json").json if row["name"] == "store")
        return row["value"], row["source"]

    def test_a_bad_variable_is_named(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """TXNCTL_OUTPUT that no command knows is bad input."""
        monkeypatch.setenv("TXNCTL_OUTPUT", "yaml")
        outcome = run("errors", "list")
        assert outcome.status == 2
        assert "TXNCTL_OUTPUT: 'yaml' is not a format" in outcome.err

    def test_a_format_of_other_commands_falls_back(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """TXNCTL_OUTPUT=value is for consume; errors list prints its table."""
        monkeypatch.setenv("TXNCTL_OUTPUT", "value")
        assert run("errors", "list").out.startswith("CODE ")

    def test_output_help_asks_for_no_argument(self, run: Any) -> None:
        """`-o help` prints the fields with their types, whatever else is missing."""
        outcome = run("errors", "explain", "-o", "help")
        assert outcome.status == 0
        lines = outcome.out.splitlines()
        assert lines[0].split() == ["FIELD", "TYPE", "WHAT", "IT", "SAYS"]
        assert lines[2].split()[:2] == ["exitCode", "integer"]

    @pytest.mark.parametrize(
        "words", [("-o", "json"), ("-ojson",), ("-o=json",), ("--output", "json"), ("--output=json",)]
    )
    def test_every_spelling_of_the_format(self, run: Any, words: tuple[str, ...]) -> None:
        """Short, glued, with an equals sign, long."""
        assert run("errors", "explain", "usage", *words).json["exitCode"] == 2


class TestErrors:
    """One line, a hint, an exit code; one object where JSON was asked for."""

    @pytest.mark.parametrize("kind", sorted(storage_errors.ALL.values(), key=lambda kind: kind.code))
    def test_every_error_of_the_engine_keeps_its_exit_code(self, run: Any, add: Any, kind: Any) -> None:
        """The command line adds nothing and takes nothing away."""
        add(failing_with(kind("it did not work", hint="Try this.", topic="orders")))
        outcome = run("probe")
        assert outcome.status == kind.exit_code
        assert outcome.err == "txnctl: error: it did not work\ntxnctl: hint: Try this.\n"
        as_json = run("probe", "-o", "json")
        assert as_json.status == kind.exit_code
        assert as_json.out == ""
        assert json.loads(as_json.err) == {
            "code": kind.code,
            "exitCode": kind.exit_code,
            "message": "it did not work",
            "hint": "Try this.",
            "retryable": kind.retryable,
            "details": {"topic": "orders"},
        }

    def test_usage_errors_are_json_too(self, run: Any) -> None:
        """Even a line that cannot be parsed is reported in the format that it asks for."""
        for words in [
            ("topcs", "-o", "json"),
            ("errors", "list", "--nope", "-ondjson"),
            ("errors", "explain", "-o=json"),
        ]:
            error = run(*words).error
            assert (error["code"], error["exitCode"], error["retryable"]) == ("usage", 2, False)

    def test_the_format_comes_from_the_environment_too(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TXNCTL_OUTPUT=json makes errors JSON."""
        monkeypatch.setenv("TXNCTL_OUTPUT", "json")
        assert run("errors", "explain", "nothing-such").error["code"] == "not-found"

    def test_an_unexpected_failure_asks_for_a_report(self, run: Any, add: Any) -> None:
        """Exit 1, one line, no traceback unless --debug."""
        add(failing_with(ZeroDivisionError("by zero")))
        outcome = run("probe")
        assert outcome.status == exit_codes.UNEXPECTED
        assert outcome.err.splitlines() == [
            "txnctl: error: unexpected failure: ZeroDivisionError: by zero",
            "txnctl: hint: This is a bug. Please report it with the output of the same command and --debug.",
        ]
        debugged = run("probe", "--debug")
        assert debugged.status == exit_codes.UNEXPECTED
        assert "Traceback (most recent call last)" in debugged.err
        assert run("probe", "-o", "json", "--debug").error["details"] == {"exception": "ZeroDivisionError"}

    def test_details_that_json_cannot_hold_are_text(self, run: Any, add: Any) -> None:
        """An error must never fail to be told."""
        add(failing_with(storage_errors.BadInput("bad", value=b"\xff", at=(1, 2))))
        assert run("probe", "-o", "json").error["details"] == {"value": "b'\\xff'", "at": "(1, 2)"}

    def test_a_message_cannot_drive_the_terminal(self, run: Any, add: Any) -> None:
        """Errors quote stored names: escapes in them are written out, newlines too."""
        add(failing_with(storage_errors.BadInput("bad \x1b[31mname\n\u202e", hint="\x07")))
        assert run("probe").err == "txnctl: error: bad \\x1b[31mname\\n\\u202e\ntxnctl: hint: \\x07\n"

    def test_what_was_printed_before_an_error_stays(self, run: Any, add: Any) -> None:
        """Standard output first, then the error."""

        @command
        @effect("reads")
        @output(FIELDS, name_field="name")
        def half(context: Context) -> None:
            """Print, then fail."""
            context.out.write("before\n")
            raise storage_errors.WaitTimeout("nothing came")

        add(half)
        outcome = run("probe")
        assert (outcome.status, outcome.out) == (exit_codes.TIMED_OUT, "before\n")

    def test_exit_on_purpose(self, run: Any, add: Any) -> None:
        """A condition found is told by the code alone."""

        @command
        @effect("reads")
        @output(FIELDS, name_field="name")
        def found(context: Context) -> None:
            """Find."""
            context.show({"name": "x"})
            context.exit(exit_codes.CONDITION_FOUND)

        add(found)
        outcome = run("probe", "-o", "name")
        assert (outcome.status, outcome.out, outcome.err) == (8, "x\n", "")

    def test_every_code_is_explained(self, run: Any) -> None:
        """`errors list` has what `errors explain` explains, and every code that can be printed."""
        rows = run("errors", "list", "-o", "json").json
        assert {row["code"] for row in rows} == set(storage_errors.ALL) - {"error"} | set(
            exit_codes.COMMAND_LINE_ERRORS
        )
        for row in rows:
            assert row["meaning"]
            assert row["exitCode"] in exit_codes.MEANINGS
            assert run("errors", "explain", row["code"], "-o", "json").json == row
        assert run("errors", "explain", "nothing-such").status == exit_codes.NOT_FOUND


class TestPassedArguments:
    """`run CMD -x`: what belongs to another command is not looked at."""

    def test_options_after_the_command_are_its_own(self, run: Any, add: Any) -> None:
        """With and without the dashes."""

        @command
        @passes_arguments
        @option("--label", help="A label.")
        @argument("words", nargs=-1, help="A command.")
        @effect("reads")
        @output(FIELDS, name_field="name")
        def execute(context: Context, label: str | None, words: tuple[str, ...]) -> None:
            """Run."""
            context.show({"name": f"{label} {list(words)}"})

        add(execute)
        expected = "a ['cmd', '-o', 'x', '--label', 'b']\n"
        assert run("probe", "-o", "name", "--label", "a", "cmd", "-o", "x", "--label", "b").out == expected
        assert (
            run("probe", "-o", "name", "--label", "a", "--", "cmd", "-o", "x", "--label", "b").out == expected
        )

    @pytest.mark.parametrize(
        "words",
        [
            ("topic", "--label", "a", "-y", "--", "cmd", "-o", "x", "--label", "b"),
            ("topic", "--label", "a", "-y", "cmd", "-o", "x", "--label", "b"),
            ("--label=a", "-y", "topic", "cmd", "-o", "x", "--label", "b"),
            ("-y", "topic", "--label", "a", "cmd", "-o", "x", "--label", "b"),
        ],
    )
    def test_what_stands_before_the_command_is_not(self, run: Any, add: Any, words: tuple[str, ...]) -> None:
        """A name of our own, with options on either side of it, as in `producers lead TOPIC --timeout 5s CMD -x`."""

        @command
        @passes_arguments
        @argument("name", help="A name.")
        @argument("words", nargs=-1, required=True, help="A command.")
        @option("--label", help="A label.")
        @effect("writes")
        @output(FIELDS, name_field="name")
        def execute(context: Context, name: str, label: str | None, words: tuple[str, ...]) -> None:
            """Run."""
            context.show({"name": f"{name} {label} {list(words)}"})

        add(execute)
        assert run("probe", "-o", "name", *words).out == "topic a ['cmd', '-o', 'x', '--label', 'b']\n"
        assert run("probe", "topic", "--nonsense", "cmd").status == exit_codes.USAGE
        assert run("probe", "topic").status == exit_codes.USAGE


SLEEPER = """
import sys, time, types
from txnctl.cli.command_table import COMMANDS
from txnctl.cli.declaration import command
from txnctl.cli.decorators import effect
@command
@effect("reads")
def probe(context):
    {body}
module = types.ModuleType("probe_of_a_test"); module.probe = probe
sys.modules["probe_of_a_test"] = module
COMMANDS["probe"] = ("probe_of_a_test:probe", "")
sys.argv = ["txnctl", "probe"]
from txnctl.__main__ import run
run()
"""


class TestProcess:
    """Signals, pipes and descriptors, in a process of its own."""

    def started(self, body: str, **streams: Any) -> subprocess.Popen[bytes]:
        """A txnctl process whose command does this."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
        return subprocess.Popen([sys.executable, "-c", SLEEPER.format(body=body)], **pipes)

    @pytest.mark.parametrize(
        ("number", "status", "word"),
        [
            (signal.SIGINT, 130, b"interrupted"),
            (signal.SIGTERM, 143, b"terminated"),
            (signal.SIGHUP, 129, b"hung up: the terminal is gone"),
        ],
    )
    def test_signals_end_it_at_once_with_their_code(self, number: int, status: int, word: bytes) -> None:
        """No traceback, and what the command was inside of is left properly."""
        body = """
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("closed", flush=True)
"""
        process = self.started(body)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        begun = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert process.returncode == status
        assert time.monotonic() - begun < 10
        assert out == b"closed\n"
        assert err == b"txnctl: error: " + word + b"\n"

    def test_ctrl_c_does_not_wait_for_a_reader_that_does_not_read(self) -> None:
        """A pager that shows its first page keeps the pipe full."""
        body = """
    for number in range(1_000_000):
        context.out.write(f"{number}\\n")
"""
        process = self.started(body)
        assert process.stdout is not None
        assert process.stdout.readline() == b"0\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == exit_codes.INTERRUPTED
        process.communicate()

    @pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
    def test_an_ignored_signal_stays_ignored(self, name: str) -> None:
        """As nohup does for SIGHUP: whoever started it decided."""
        process = self.started(
            f'import os, signal; os.kill(os.getpid(), signal.{name}); print("alive")',
            preexec_fn=lambda: signal.signal(signal.Signals[name], signal.SIG_IGN),
        )
        out, _ = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, b"alive\n")

    def test_a_closed_pipe_ends_it_quietly(self) -> None:
        """`txnctl ... | head -1` is 141 and says nothing."""
        body = """
    for number in range(1_000_000):
        context.out.write(f"{number}\\n")
"""
        process = self.started(body)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        assert process.wait(timeout=20) == exit_codes.PIPE_CLOSED
        assert err == b""

    def test_a_pipe_closed_before_the_last_flush_ends_it_quietly(self) -> None:
        """Also where everything fitted into the buffer."""
        read, write = os.pipe()
        process = self.started("time.sleep(0.2); context.out.write('x')", stdout=write)
        os.close(write)
        os.close(read)
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (exit_codes.PIPE_CLOSED, b"")

    def test_a_full_disk_under_standard_output_is_told(self) -> None:
        """A result that did not get out is not a success."""
        with open("/dev/full", "wb") as full:
            process = self.started("context.out.write('x')", stdout=full)
            _, err = process.communicate(timeout=20)
        assert process.returncode == exit_codes.UNEXPECTED
        assert b"cannot write the result to standard output: No space left on device" in err
        assert b"bug" not in err

    def test_closed_streams_take_no_descriptor_of_the_store(self) -> None:
        """Opened later, a file must never become number 0, 1 or 2."""
        program = "import sys; sys.argv = ['txnctl', 'version']; import txnctl.__main__ as m, os\n"
        check = "m._leave = lambda status: os._exit(0 if os.open('/', os.O_RDONLY) > 2 else 9)\nm.run()"
        done = subprocess.run(
            ["/bin/sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, program + check], check=False
        )
        assert done.returncode == 0

    def test_unbuffered_python_writes_all_of_a_large_result(self) -> None:
        """A bare descriptor may take a part and stop; the stream goes on until all is out."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = self.started("context.out.write('x' * 5_000_000)", env=environment)
        out, _ = process.communicate(timeout=20)
        assert (process.returncode, len(out)) == (0, 5_000_000)

    def test_unbuffered_python_prints_what_came_before_an_error(self) -> None:
        """What is held back in that stream is let out too."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = self.started("context.out.write('before'); 1 / 0", env=environment)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (1, b"before")
        assert b"ZeroDivisionError" in err

    def test_exit_waits_for_what_registered_to_run_at_the_end(self) -> None:
        """Leaving early is for processes that nobody else waits for the end of."""
        process = self.started("import atexit; atexit.register(print, 'last')")
        out, _ = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, b"last\n")

    def test_python_m_txnctl_is_the_command(self, start: Any) -> None:
        """`python -m txnctl` and the console script are one."""
        out, err = start("--version").communicate(timeout=20)
        assert (out, err) == (f"txnctl {__version__}\n".encode(), b"")
