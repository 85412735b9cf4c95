"""Main: `txnctl/cli/main.py`."""

from __future__ import annotations

import fcntl
import io
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import IO, Any

import pytest

from storage import Store
from tests.waiting import wait_for
from txnctl import __version__
from txnctl.cli import exit_codes
from txnctl.output import shell

SLEEPER = """
import signal, sys, time, types
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


def test_a_run_leaves_no_store_in_later_commands(run: Any, tmp_path: Path) -> None:
    """A program that calls `main` words its own commands afterwards without the store of that line."""
    Store.create(tmp_path / "a")
    assert run("--store", str(tmp_path / "a"), "topics", "show", "none").status == 3
    assert shell.line("topics list") == "txnctl topics list"


UNTIL_CLOSED = "import select; closed = select.poll(); closed.register(1, 0); closed.poll()"
"""Python that waits until no reader of its standard output is left."""


def unread(pipe: IO[bytes]) -> int:
    """The bytes that a pipe keeps."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0])


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
            "locale",
            "platform",
            "uuid",
            "importlib.metadata",
            "pathlib",
            "dataclasses",
            "subprocess",
        }
        assert not loaded & heavy

    def test_the_help_of_a_command_loads_no_part_of_the_engine(self) -> None:
        """Errors, values and the names of fields in JSON alone: `--help`, parsing and completion read no store."""
        program = (
            "import sys\n"
            "from txnctl.generate.tree import pages\n"
            "words = {'actions', 'errors', 'json_form', 'limits', 'process', 'values'}\n"
            "for page in pages():\n"
            "    page.command.get_help(page.context)\n"
            "    engine = {name for name in sys.modules if name.startswith('storage.')}\n"
            "    engine = {name for name in engine if name.split('.')[1] not in words}\n"
            "    assert not engine and 'lmdb' not in sys.modules, (page.title, engine)\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
        for words in (("status",), ("topics", "stats"), ("transactions", "explain"), ("store", "gc")):
            loaded = self.loaded(*words, "--help")
            assert not {
                name for name in loaded if name.startswith(("lmdb", "storage.disk", "storage.reports"))
            }

    @pytest.mark.parametrize(
        ("words", "others"),
        [
            (("tables", "get", "accounts", "B1"), set()),
            (("tables", "get", "accounts", "B1", "--check", "none", "-o", "json"), set()),
            (("tables", "get", "accounts", "B1", "--at", "now"), {"retention", "intent"}),
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
                "storage.client.table_transaction",
                "storage.client.work.work",
                "storage.client.work.write_set",
                "storage.client.transaction",
                "storage.client.work.handle",
            ),
            *(
                "storage.txn.coordinator",
                "storage.txn.uncommitted_entries",
                "storage.subscription.pending_ack",
                "tabulate",
            ),
            *("storage.subscription.catalogue", "storage.topic.log", "storage.client.reader"),
            *{f"storage.table.{name}" for name in ("writing", "retention", "intent", "conflict", "push")},
        }
        assert loaded & writers == {f"storage.table.{name}" for name in others}

    def test_statistics_load_no_digest(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """`hashlib` loads OpenSSL, and only a look for the key of a compacted view needs a digest."""
        Store.create(tmp_path / "store")
        with Store.open(tmp_path / "store") as store:
            store.create_topic("orders")
        monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "store"))
        assert not self.loaded("topics", "stats", "orders", "-o", "json") & {"hashlib", "_hashlib"}

    def test_one_command_alone_loads_curses(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nor does a report that can be watched load the loop or the layout of screens before it is watched."""
        Store.create(tmp_path / "store")
        monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "store"))
        for words in (("status",), ("transactions", "list"), ("subscriptions", "lag"), ("top", "--help")):
            assert not self.loaded(*words) & {"curses", "_curses", "select", "txnctl.output.room"}, words

    def test_a_module_loaded_on_use_is_whole_when_used(self) -> None:
        """What looks into `inspect` or `gettext` finds it, also through names of its own; `uuid` is put off for click."""
        program = (
            "import sys, txnctl.__main__ as start\n"
            "sys.modules['inspect'] = start._LoadedOnUse('inspect')\n"
            "import inspect; assert 'ast' not in sys.modules\n"
            "from inspect import signature\n"
            "assert str(signature(lambda a: a)) == '(a)' and inspect.cleandoc(' x') == 'x'\n"
            "import inspect as again; assert type(again).__name__ == 'module'\n"
            "start._load_on_use(); import gettext, os, platform, uuid\n"
            "assert type(gettext) is start._LoadedOnUse\n"
            "from gettext import dgettext, ngettext\n"
            "assert dgettext('click', 'x') == 'x' and ngettext('x', 'y', 2) == 'y'\n"
            "from platform import system\n"
            "assert platform.system() == system() == os.uname().sysname == platform.uname().system\n"
            "assert platform.python_version() and str(uuid.UUID(int=1)).endswith('0001')\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True)


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
        signal.pause()
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
        room = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ) - io.DEFAULT_BUFFER_SIZE
        wait_for(lambda: unread(process.stdout) >= room, "the pipe is full")
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
        process = self.started(f"{UNTIL_CLOSED}; context.out.write('x')", stdout=write)
        os.close(write)
        os.close(read)
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (exit_codes.PIPE_CLOSED, b"")

    def test_a_full_disk_under_standard_output_is_told(self) -> None:
        """A result that did not get out is not a success."""
        with open("/dev/full", "wb") as full:
            process = self.started("context.out.write('x')", stdout=full)
            _, err = process.communicate(timeout=20)
        assert process.returncode == exit_codes.STORE_INVALID
        assert b"cannot write the result to standard output: No space left on device" in err
        assert b"bug" not in err

    @pytest.mark.parametrize(
        "words",
        [
            "--help",
            "--version",
            "help",
            "version",
            "errors",
            "topics --help",
            "topics",
            "completion bash",
            "store info",
            "topics list",
            "topics list -o help",
            "topics list --json-schema",
        ],
    )
    def test_every_kind_of_output_ends_with_6_on_a_full_disk(self, words: str, tmp_path: Path) -> None:
        """Help, lists and reports, at a write as at the last flush; a full standard error changes no outcome."""
        where = str(tmp_path / "store")
        Store.create(where)
        with Store.open(where) as store:
            store.create_topic("orders")
        command = [sys.executable, "-m", "txnctl", *words.split()]
        environment = {**os.environ, "TXNCTL_STORE": where}
        with open("/dev/full", "wb") as full:
            ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, env=environment)
            assert ended.returncode == exit_codes.STORE_INVALID
            assert ended.stderr.startswith(
                b"txnctl: error: cannot write the result to standard output: No space left on device\n"
            )
            assert b"bug" not in ended.stderr
            noted = subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=full, check=False, env=environment
            )
            assert noted.returncode == exit_codes.DONE

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


def test_an_option_before_the_command_is_told_its_place(run: Any) -> None:
    """Options of a command stand after the command, whether the command is in a group or not."""
    for words, line in (
        (("-o", "json", "status"), "txnctl status -o json"),
        (("topics", "-o", "json", "list"), "txnctl topics list -o json"),
    ):
        outcome = run(*words)
        assert outcome.status == 2
        assert outcome.error["hint"] == f"Options of a command stand after it: {line}"
