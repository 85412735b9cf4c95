"""Producers in every access mode: sessions with a lease, living owners, those that wait, fencing and leaders."""

from __future__ import annotations

import signal

from tests.golden.parts.bank import look_around
from tests.golden.teller import Teller


def play(teller: Teller) -> None:
    """Work on the topics `owned`, `led` and `busy`."""
    for topic in ("owned", "led", "busy"):
        teller.do(f"topics create {topic}")
    _sessions(teller)
    _leaders(teller)
    _shared(teller)
    look_around(teller)


def _look(teller: Teller, topic: str) -> None:
    teller.look(f"producers list {topic}", f"producers show {topic}", f"topics stats {topic}")


def _sessions(teller: Teller) -> None:
    first = teller.do("producers open owned --lease 1h --producer keeper")["session"]
    _look(teller, "owned")
    teller.do(f"produce owned -m through --session {first}")
    with teller.environment(TXNCTL_SESSION=first):
        teller.do("produce owned -m current")
        teller.do("produce owned -m other --access-mode Exclusive")
        teller.do("producers close --dry-run")
    teller.do("produce owned -m refused")
    teller.do("producers open owned")
    teller.do("producers open owned --access-mode WaitForExclusive --timeout 2s --lease 1m")
    second = teller.do("producers open owned --access-mode ExclusiveWithFencing --lease 1h")["session"]
    teller.do(f"produce owned -m fenced --session {first}")
    teller.do(f"producers open owned --resume {first}")
    txn = teller.do("transactions begin --timeout 1h")["txnId"]
    teller.do(f"produce owned -m open --session {second} --txn {txn}")
    _look(teller, "owned")
    teller.do("producers open owned --epoch 0")
    teller.plan("producers fence owned --yes --reason 'split brain'")
    teller.do(f"transactions show {txn}")
    third = teller.do("producers open owned --lease 5s", output="ndjson")[0]["session"]
    teller.wait(10)
    _look(teller, "owned")
    fourth = teller.do(f"producers open owned --resume {third} --lease 1h")["session"]
    teller.plan(f"producers close {fourth}")
    teller.do(f"producers close {fourth}")
    teller.do("producers open shared --access-mode Shared --create --lease 1h")
    _look(teller, "shared")


def _leaders(teller: Teller) -> None:
    leader = teller.start_ready("producers lead led --producer leader")
    waiters = []
    for number in (1, 2):
        waiters.append(teller.start(f"producers lead led --producer waiter-{number} -- cat"))
        teller.until("producers show led", lambda row, number=number: row["waitingPublishers"] == number)
    teller.wait(30)
    _look(teller, "led")
    teller.look("status", "doctor", "topics show led")
    teller.do("topics delete led --yes")
    teller.do("produce led -m refused")
    teller.do("producers fence led --waiting --dry-run")
    waiters[1].process.send_signal(signal.SIGKILL)
    waiters[1].process.communicate()
    _look(teller, "led")
    waiters[0].kill()
    leader.kill()
    _look(teller, "led")
    teller.plan("producers fence led --waiting --yes")


def _shared(teller: Teller) -> None:
    child = teller.start("produce busy --producer stream --print-ids -o ndjson")
    assert child.process.stdin is not None
    child.process.stdin.write(b"streamed\n")
    child.process.stdin.flush()
    teller.until("topics show busy", lambda row: row["msgCount"] == 1)
    _look(teller, "busy")
    teller.do("produce busy -m refused --access-mode Exclusive")
    teller.plan("topics delete busy --force --yes")
    child.kill()
