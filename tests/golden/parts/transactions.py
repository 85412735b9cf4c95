"""Transactions over several topics: open, ended in every way, blocking, attached to a process, run and waited for."""

from __future__ import annotations

import signal

from tests.golden.parts.bank import look_around, look_at_topic
from tests.golden.teller import Teller


def play(teller: Teller) -> None:
    """Begin and end transactions on the topics of the store `bank`."""
    teller.do("subscriptions create orders billing --from earliest")
    teller.do("subscriptions create orders monitor --isolation-level read-uncommitted --from earliest")
    committed = _begun(teller, "--label job=loader --label by=hand --timeout 1h")
    teller.do(f"produce orders -m in-txn -m more --txn {committed}")
    teller.do(f"produce payments -m paid --txn {committed}")
    look_at_transaction(teller, committed)
    teller.do(f"transactions commit {committed}")
    teller.do(f"transactions commit {committed}")
    look_at_transaction(teller, committed)
    _aborted(teller)
    _expired(teller)
    _blocking(teller)
    _attached(teller)
    _run(teller)


def look_at_transaction(teller: Teller, txn: str) -> None:
    """Run every command that reads one transaction."""
    teller.look(f"transactions show {txn}", f"transactions explain {txn}")


def _begun(teller: Teller, options: str = "") -> str:
    return str(teller.do(f"transactions begin {options}")["txnId"])


def _aborted(teller: Teller) -> None:
    txn = _begun(teller)
    teller.do(f"produce orders --txn {txn} --producer loader", b"dropped\n" * 7)
    teller.do(f"transactions abort {txn} --if-version 99")
    teller.plan(f"transactions abort {txn} --yes --reason 'a wrong file'")
    teller.do(f"transactions abort {txn} --yes")
    look_at_transaction(teller, txn)
    fenced = _begun(teller)
    teller.do(f"produce orders -m half --txn {fenced}")
    teller.plan(f"transactions abort {fenced} --fence --yes")
    teller.do(f"produce orders -m late --txn {fenced}")
    teller.do(f"transactions commit {fenced}")
    teller.look("transactions history --reason asked", "transactions history --since 1h -n 1")


def _expired(teller: Teller) -> None:
    txn = _begun(teller, "--timeout 8s")
    teller.do(f"produce orders -m late --txn {txn}")
    teller.wait(10)
    look_at_transaction(teller, txn)
    teller.look("transactions list", "transactions slow --over 1s", "doctor", "status")
    teller.do("transactions reap --dry-run --yes")
    teller.do("transactions reap --yes --reason 'by hand'")
    look_at_transaction(teller, txn)
    other = _begun(teller, "--timeout 8s")
    teller.wait(10)
    teller.do(f"produce orders -m late --txn {other}")
    teller.do(f"transactions commit {other}")


def _blocking(teller: Teller) -> None:
    first = _begun(teller, "--timeout 20h --label job=slow --priority low")
    teller.do(f"produce orders -m blocks --txn {first}")
    teller.do("produce orders -m waits -m too")
    second = _begun(teller, "--timeout 20h --priority high")
    teller.do(f"produce orders -m next --txn {second}")
    teller.do("produce orders -m behind")
    teller.do(f"produce payments -m elsewhere --txn {second}")
    teller.wait(120)
    look_at_topic(teller, "orders")
    look_at_transaction(teller, first)
    look_at_transaction(teller, second)
    look_around(teller)
    teller.look("transactions slow --exit-code", "transactions blocked --exit-code", "doctor --exit-code")
    teller.look("subscriptions lag orders", "subscriptions lag orders billing --exit-code")
    with teller.environment(TXNCTL_TXN=first):
        teller.look("transactions show", "transactions explain")
        teller.do("produce orders -m current")
        teller.do("transactions commit")
    teller.do(f"transactions wait {second} --timeout 2s")
    teller.do(f"transactions commit {second}")
    teller.do(f"transactions wait {second} --exit-code")


def _attached(teller: Teller) -> None:
    child = teller.start_ready("transactions run --label job=attached --timeout 1h")
    txn = child.line
    teller.do(f"produce orders -m attached --txn {txn}")
    look_at_transaction(teller, txn)
    teller.look("transactions list", "store locks", "status")
    teller.do(f"transactions abort {txn} --yes")
    teller.do(f"transactions abort {txn} --dry-run")
    child.kill()
    look_at_transaction(teller, txn)
    teller.look("transactions list", "transactions orphans --exit-code", "doctor", "store locks")
    teller.do("transactions reap --yes")
    look_at_transaction(teller, txn)


def _run(teller: Teller) -> None:
    teller.do("transactions wait 0:1", output="name")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        txn = _begun(teller)
        child = teller.start(f"transactions wait {txn} -o json")
        pid = child.process.pid
        teller.until("store readers", lambda rows, pid=pid: pid in [row["pid"] for row in rows])
        teller.ended(child, number)
        teller.do(f"transactions abort {txn} --yes --force")
