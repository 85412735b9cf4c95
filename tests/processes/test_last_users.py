"""The last user of a transaction that belongs to no process: reports name it, and an abort goes by it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from storage.errors import OwnerAlive
from storage.process.clock import Clock
from tests.processes.child import Child, Children
from tests.row_json import row_json

BEGINNER = """
    with Store.open(path, program="beginner") as store:
        txn = store.begin_transaction()
        store.create_producer("t").send(b"of the beginner", txn=txn)
        say("began", txn)
        hear()
"""

USER = """
    with Store.open(path, program="loader") as store:
        txn = hear()
        {use}
        say("used")
        hear()
"""

USES = {
    "send": 'store.create_producer("t").send(b"of the user", txn=txn)',
    "put": 'store.table("accounts", create=True).put(b"k", b"v", txn=txn)',
    "ack": 'c = store.subscribe("t", "s", initial_position=EARLIEST); c.acknowledge(c.receive(timeout=5), txn=txn)',
}

MINUTE_NS = 61 * 10**9


class Later(Clock):
    """The clocks of this machine, a minute ahead."""

    @staticmethod
    def boot_ns() -> int:
        return Clock.boot_ns() + MINUTE_NS

    @staticmethod
    def shared_ns() -> int:
        return Clock.shared_ns() + MINUTE_NS

    @staticmethod
    def wall_ns() -> int:
        return time.time_ns() + MINUTE_NS


def a_minute_later(path: str) -> Store:
    """The store as a process sees it that looks a minute later, and changes nothing."""
    return Store.open(path, clock=Later(), read_only=True)


def begin(children: Children) -> tuple[Child, str]:
    beginner = children.run(BEGINNER)
    return beginner, beginner.expect("began")


def use(children: Children, txn: str, how: str = "send") -> Child:
    user = children.run(USER.format(use=USES[how]))
    user.say(txn)
    user.expect("used")
    return user


def run(path: str, *words: str) -> str:
    """A report of the command line, as a process of its own prints it."""
    command = [sys.executable, "-m", "txnctl", *words, "--store", path]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout


def texts(path: str, txn: str) -> dict[str, str]:
    """The reports about one transaction."""
    return {
        "explain": run(path, "transactions", "explain", txn),
        "list": run(path, "transactions", "list"),
        "abort": run(path, "transactions", "abort", txn, "--dry-run"),
    }


@pytest.mark.parametrize("how", list(USES))
def test_a_live_process_that_used_the_transaction_of_a_killed_one_is_named(
    path: str, children: Children, how: str
) -> None:
    """Each use by the id is noted; a minute later every report says that the user lives, and none that nobody is."""
    with Store.open(path) as store:
        store.create_producer("t").send(b"before")
    beginner, txn = begin(children)
    beginner.kill()
    user = use(children, txn, how)
    with Store.open(path) as store:
        store.create_producer("t").send(b"behind")
    with a_minute_later(path) as later:
        row = row_json(later.reports.show_transaction(txn))
        assert (row["ownerState"], row["lastUserState"]) == ("detached", "alive")
        assert f":{user.pid} (loader)" in row["lastUser"]
        explained = row_json(later.reports.explain_transaction(txn))
        assert f"Process {user.pid} (loader), its last user, lives" in explained["because"]
        assert explained["safeToEnd"] is False
        told = str(row_json(later.reports.store_overview()))
        assert "Nobody" not in told
        assert "nobody uses" not in told
        user.kill()
        assert row_json(later.reports.show_transaction(txn))["lastUserState"] == "dead"
        assert "nobody uses it" in row_json(later.reports.explain_transaction(txn))["because"]


@pytest.mark.parametrize("is_user", [False, True])
def test_a_stopped_process_is_told_from_a_dead_one_in_every_report(
    path: str, children: Children, is_user: bool
) -> None:
    """A stopped beginner, or last user, is continued by kill -CONT, in the words of an attached owner."""
    user, txn = begin(children)
    program, named = "beginner", f"Its process {user.pid} is stopped"
    if is_user:
        beginner, user = user, use(children, txn)
        beginner.kill()
        program, named = "loader", f"Process {user.pid} (loader), its last user, is stopped"
    user.stop()
    told = texts(path, txn)
    assert named in told["explain"]
    assert f"kill -CONT {user.pid}" in told["explain"]
    assert f"ps -fp {user.pid}" in told["explain"]
    assert f"last used by process {user.pid} ({program}), which is stopped" in told["abort"]
    assert f"kill -CONT {user.pid}" in told["abort"]
    assert "--force" in told["abort"]
    assert "stopped" in next(line for line in told["list"].splitlines() if line.startswith(txn))
    user.resume()


def test_the_guard_of_an_abort_goes_by_the_last_user(children: Children, store: Store) -> None:
    """A living user of less than a minute ago forbids it, a dead one does not; the calling process is none."""
    beginner, txn = begin(children)
    with pytest.raises(OwnerAlive, match=f"last user of transaction {txn}|owner of transaction {txn}"):
        store.admin.transactions.abort_transaction(txn)
    user = use(children, txn)
    beginner.kill()
    with pytest.raises(
        OwnerAlive, match=f"last user of transaction {txn}, .*:{user.pid} \\(loader\\), is alive"
    ):
        store.admin.transactions.abort_transaction(txn)
    rehearsed = store.admin.transactions.abort_transaction(txn, dry_run=True)
    assert rehearsed.refused is not None
    user.kill()
    store.use_transaction(txn)
    assert row_json(store.reports.show_transaction(txn))["lastUserState"] == "calling"
    assert store.admin.transactions.abort_transaction(txn).refused is None


def test_the_stopped_user_is_a_finding(children: Children, store: Store) -> None:
    """With the command that continues it; as soon as it is dead, it is not."""
    beginner, txn = begin(children)
    beginner.kill()
    user = use(children, txn)

    def findings() -> list[dict[str, Any]]:
        return [
            found for found in row_json(store.reports.store_overview())["findings"] if txn in found["what"]
        ]

    user.stop()
    (found,) = findings()
    assert found["code"] == "owner-stopped"
    assert f"{txn} was last used by process {user.pid}, which is stopped" in found["what"]
    user.kill()
    assert findings() == []


def test_every_report_that_names_the_owner_names_a_last_user_of_its_own(
    path: str, children: Children
) -> None:
    """Lag, topics stats, tables stats and intents, the next blocker of an abort, blocked, timeline and status."""
    with Store.open(path) as store:
        store.create_table("accounts")
        store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
        first = store.begin_transaction()
        store.create_producer("t").send(b"first", txn=first)
        _, txn = begin(children)
        user = children.run(USER.format(use=f"{USES['send']}; {USES['put']}"))
        user.say(txn)
        user.expect("used")
        store.create_producer("t").send(b"behind")
        rehearsed = row_json(store.admin.transactions.abort_transaction(first, dry_run=True))
        before = texts(path, str(first))["abort"]
        store.admin.transactions.abort_transaction(first)
        blocker = row_json(store.reports.topic_stats("t"))["blockedBy"]
        one = row_json(store.reports.subscription_stats("t", "s"))["blockedBy"]
        (holder,) = row_json(store.table("accounts").stats())["holders"]
        (intent,) = row_json(store.table("accounts").intents())
    (effect,) = [effect for effect in rehearsed["effects"] if effect["kind"] == "topic"]
    for row in (blocker, one, holder, intent, effect["blockedNext"]):
        assert f":{user.pid} (loader)" in row["lastUser"], row
        assert (row["ownerState"], row["lastUserState"]) == ("detached", "alive"), row
    named = f"last used by process {user.pid} (loader), which is alive"
    address = str(blocker["lastUser"]).removesuffix(" (loader)")
    assert f"last used by {address}, alive, active " in before
    user.stop()
    assert named.replace("alive", "stopped") in run(path, "subscriptions", "lag", "t")
    for words in (
        ("transactions", "blocked", "t"), ("transactions", "timeline", "t"), ("status",),
        ("tables", "stats", "accounts"), ("tables", "intents", "accounts"),
    ):  # fmt: skip
        told = run(path, *words)
        assert address in told, told
        assert "stopped" in told, told
    user.resume()
