"""A livelock on the operator's four pages: `status`, `doctor`, `check` and the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import LostConflict
from storage.limits import LIVELOCK_LOSSES_MIN


@pytest.fixture
def livelock(path: Path) -> None:
    """Two jobs that lose one key to each other."""
    with Store.open(path, program="left.py") as left, Store.open(path, program="right.py") as right:
        jobs = [(left, {"job": "left"}), (right, {"job": "right"})]
        for number in range(LIVELOCK_LOSSES_MIN):
            (loser, labels), (winner, others) = jobs[number % 2], jobs[1 - number % 2]
            lost, won = loser.begin_transaction(labels=labels), winner.begin_transaction(labels=others)
            loser.table("balances").put(b"B1", b"lost", txn=lost)
            winner.table("balances").put(b"B1", b"won", txn=won)
            with pytest.raises(LostConflict):
                loser.commit_transaction(lost)
            winner.admin.transactions.abort_transaction(won, force=True)


@pytest.mark.usefixtures("livelock")
@pytest.mark.parametrize("words", [("status",), ("doctor",), ("check",), ("report", "--html", "-")])
def test_each_page_names_the_jobs(run: Callable[..., Any], words: tuple[str, ...]) -> None:
    """By labels and program, with the losses of each; the report shows no key."""
    out = " ".join(run(*words).out.split())
    assert "ivelock: 10 transactions lost 1 key of table balances " in out
    for job in ("5 of job=left (left.py)", "5 of job=right (right.py)"):
        assert job in out
    assert ("(B1)" in out) is (words[0] != "report")


@pytest.mark.usefixtures("livelock")
def test_check_warns(run: Callable[..., Any]) -> None:
    """Unless a threshold says otherwise."""
    assert run("check").status == 1
    assert run("check", "--warn", "livelocks=1").status == 0
    (row,) = run("status", "-o", "json").json["contendedKeys"]
    assert (row["table"], row["key"], row["losses"], row["commits"]) == ("balances", "B1", 10, 0)
    assert [job["labels"]["job"] for job in row["jobs"]] == ["left", "right"]
