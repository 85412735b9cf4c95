"""Complete: `txnctl/cli/complete.py`."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.txnctl.generated_steps import CHECKOUT
from txnctl.cli.command_table import COMMANDS
from txnctl.cli.complete import SCRIPTS, script
from txnctl.cli.main import root
from txnctl.cli.value_types import TransactionGrammar
from txnctl.generate import __main__ as generate


def _noted(seen: list[float], call: Callable[..., object], timer: int, *seconds: float) -> object:
    """Note the seconds of a call, up to the first alarm."""
    seen.append(seconds[0])
    return call(timer, *seconds)


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


def completed_in_fish(line: str, environment: dict[str, str]) -> list[str]:
    """The answer of fish at the end of this line, each name with its description."""
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"{script('fish')}\ncomplete -C {shlex.quote(line)}"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def completed_in_zsh(words: tuple[str, ...], environment: dict[str, str]) -> list[str]:
    """The names with their descriptions that the script hands to zsh's own functions."""
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
    return done.stdout.splitlines()


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
            store.begin_transaction(timeout=600, labels={"job": "loader"})
            store.create_topic("old")
            store.admin.topics.delete_topic("old")
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
            ("txnctl consume orders --isolation-level read-c", ["READ_COMMITTED"]),
            ("txnctl errors explain us", ["usage"]),
            ("txnctl store config retention-", ["retention-time", "retention-size", "retention-hard"]),
            ("txnctl store config reap-policy o", ["overdue"]),
            (
                "txnctl topics config orders --retention-",
                ["--retention-time", "--retention-size", "--retention-hard"],
            ),
            ("txnctl transactions list --label j", ["job=loader"]),
            ("txnctl transactions abort --label ", ["job=loader"]),
            ("txnctl audit list --action topics", ["topics", r"topics\ delete"]),
            (r"txnctl audit list --action topics\ d", [r"topics\ delete"]),
            ("txnctl audit list --target o", ["old"]),
            ("txnctl audit show ", ["1"]),
            ("txnctl help trans", ["transactions"]),
            ("txnctl help transactions ab", ["abort"]),
            ("txnctl help transactions abort ", [""]),
            ("txnctl consume payments -s ", [""]),
            ("txnctl transactions list --lim", [""]),
            ("txnctl topics create new --y", [""]),
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
            ("txnctl errors explain writer", ["writer-busy\tTry again, or wait longer: --lock-timeout."]),
            ("txnctl consume orders --isolation-level read-c", ["READ_COMMITTED"]),
            (
                "txnctl store config reap-p",
                [
                    "reap-policy\tWhat the next writer aborts: all (overdue ones and those of dead owners), overdue, or manual."
                ],
            ),
            ("txnctl transactions list --label j", ["job=loader\t0:1"]),
            ("txnctl audit list --action topics\\ d", ["topics delete"]),
            ("txnctl consume orders -s b", ["billing\tExclusive, READ_COMMITTED"]),
            ("txnctl audit show ", ["1\ttopics delete old"]),
        ],
    )
    def test_fish(self, environment: dict[str, str], line: str, offered: list[str]) -> None:
        """With what each name is."""
        assert completed_in_fish(line, environment) == offered

    @pytest.mark.needs_program("zsh")
    @pytest.mark.parametrize(
        ("words", "offered"),
        [
            (("txnctl", "err"), ["errors:List the error codes, explain one."]),
            (("txnctl", "topics", "stats", ""), ["orders", "payments"]),
            (("txnctl", "errors", "explain", "us"), ["usage:--help of the command says what it takes."]),
            (("txnctl", "consume", "orders", "--isolation-level", "read-c"), ["READ_COMMITTED"]),
            (
                ("txnctl", "store", "config", "ttl"),
                ["ttl:The age at which messages are acknowledged for every subscription that has not."],
            ),
            (("txnctl", "transactions", "list", "--label", "j"), ["job=loader:0:1"]),
            (("txnctl", "audit", "list", "--action", "topics\\ d"), ["topics delete"]),
            (("txnctl", "consume", "orders", "-s", ""), ["billing:Exclusive, READ_COMMITTED"]),
        ],
    )
    def test_zsh(self, environment: dict[str, str], words: tuple[str, ...], offered: list[str]) -> None:
        """What the script hands to zsh's own functions."""
        assert completed_in_zsh(words, environment) == offered

    @pytest.mark.needs_program("bash")
    def test_stored_text_with_control_characters_is_not_offered(self, environment: dict[str, str]) -> None:
        """A line end in a label would begin a word of its own, an escape would reach the terminal."""
        with Store.open(environment["TXNCTL_STORE"]) as store:
            store.begin_transaction(labels={"job": "bad\n\x1b[2J\u202ename"})
        assert completed_in_bash("txnctl transactions list --label ", environment) == ["job=loader"]

    @pytest.mark.needs_program("zsh", "fish")
    def test_an_id_comes_with_a_description(self, environment: dict[str, str]) -> None:
        """Age and owner, also where a colon in the id parts words of the shell."""
        (fish,) = completed_in_fish("txnctl transactions show 0:", environment)
        assert re.fullmatch(r"0:1\t\d+\w+, .+@.+", fish)
        (zsh,) = completed_in_zsh(("txnctl", "transactions", "show", "0:"), environment)
        assert re.fullmatch(r"0\\:1:\d+\w+, .+@.+", zsh)

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
            assert run("completion", shell).out == generate.generated_files()[f"completions/{name}"]

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

    def test_a_server_that_does_not_answer_is_waited_for_no_longer_than_a_moment(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The alarm ends the look, with nothing offered, while the server has not said a word."""
        alarms = []
        monkeypatch.setattr(signal, "setitimer", partial(_noted, alarms, signal.setitimer))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            monkeypatch.setenv("TXNCTL_STORE", f"postgresql://x@127.0.0.1:{port}/x?store=s")
            monkeypatch.setenv("_TXNCTL_COMPLETE", "bash_complete")
            monkeypatch.setenv("COMP_LINE", "txnctl topics stats ")
            outcome = run()
        assert (outcome.status, outcome.out.strip(), outcome.err) == (0, "", "")
        assert alarms == [1.0, 0]

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
