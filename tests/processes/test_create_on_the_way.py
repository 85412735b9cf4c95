"""`--create` under kills: what a killed command leaves is its first store transaction and no empty topic or table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage import Store

PROGRAM = """
import os, signal, sys
from storage import faults
point, left = sys.argv.pop(1), int(sys.argv.pop(1))
def kill():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
faults.arm(point, kill)
from txnctl.__main__ import run
sys.exit(run())
"""
"""`txnctl`, killed when it reaches a fault point for so many times."""

POINTS = ("environment.before_change", "environment.before_commit", "environment.after_commit")
WAYS = {
    "import": ("tables import new --create", b'{"key":"a","value":"1"}\n' * 3),
    "import --txn": ("tables import new --create --txn 0:1", b'{"key":"a","value":"1"}\n' * 3),
    "produce -m": ("produce new --create -m one", b""),
    "produce lines": ("produce new --create", b"one\ntwo\n"),
    "produce named": ("produce new --create --producer p", b"one\ntwo\n"),
    "produce --atomic": ("produce new --create --atomic", b"one\ntwo\n"),
    "produce --txn": ("produce new --create --txn 0:1", b"one\ntwo\n"),
    "produce Exclusive": ("produce new --create --access-mode Exclusive", b"one\ntwo\n"),
    "produce WaitForExclusive": ("produce new --create --access-mode WaitForExclusive -m one", b""),
    "produce ExclusiveWithFencing": ("produce new --create --access-mode ExclusiveWithFencing", b"one\n"),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "store")
    Store.create(place)
    with Store.open(place) as store:
        store.begin_transaction()
    return place


def is_whole(path: str) -> bool:
    """Whether the store has the topic or table, which then holds something of the command."""
    with Store.open(path) as store:
        assert store.maintenance.verify_store(full=True) == []
        for name in store.topics():
            assert list(store.reports.topic_log(name)), "an empty topic is left"
        for name in store.tables():
            assert list(store.table(name).scan()) or store.table(name).intents(), "an empty table is left"
        return bool(store.topics() or store.tables())


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("words", "given"), WAYS.values(), ids=WAYS)
def test_a_killed_command_leaves_no_empty_object(path: str, words: str, given: bytes, point: str) -> None:
    """Killed at each pass of a point, until it is not reached any more and the command succeeds."""
    program = [sys.executable, "-c", PROGRAM, point]
    for times in range(1, 20):
        done = subprocess.run(
            [*program, str(times), *words.split()],
            input=given,
            capture_output=True,
            check=False,
            env={**os.environ, "TXNCTL_STORE": path},
        )
        is_there = is_whole(path)
        if done.returncode == 0:
            assert is_there
            return
        assert done.returncode == -signal.SIGKILL, done.stderr
        if is_there:
            return  # the next run would find the topic or table
    pytest.fail("the command reaches the point again and again")
