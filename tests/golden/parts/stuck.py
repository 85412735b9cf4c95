"""A store that is stuck in several ways at once: owners dead, stopped, of a second boot and of a second host."""

from __future__ import annotations

from tests.golden.parts.bank import look_around, look_at_topic
from tests.golden.parts.transactions import look_at_transaction
from tests.golden.teller import Teller


def play(teller: Teller) -> None:
    """Make the store `stuck` and look at it from all sides."""
    teller.use("stuck")
    teller.do("store init")
    teller.do("store config reap-policy manual --yes --reason 'an operator decides'")
    teller.do("topics create orders --ledger-entries 4")
    teller.do("tables create balances")
    teller.do("subscriptions create orders billing --from earliest --subscription-type shared")
    teller.do("subscriptions create orders monitor --isolation-level read-uncommitted --from earliest")
    teller.do("produce orders", b"one\ntwo\nthree\n")
    owners = [
        # A table refuses transactions of an earlier boot: the writer of the table begins last.
        teller.start_ready("transactions run --timeout 10h", boot=2),
        teller.start_ready("transactions run --timeout 10h", boot=3, host="elsewhere"),
        teller.start_ready("transactions run --timeout 10h --label job=stopped"),
        teller.start_ready("transactions run --timeout 10h --label job=killed"),
    ]
    for number, owner in enumerate(owners):
        teller.do(f"produce orders -m 'of {number}' --txn {owner.line}")
        teller.do(f"produce orders -m 'behind {number}'")
    teller.do(f"tables put balances key held --txn {owners[-1].line}")
    teller.do(f"subscriptions ack orders billing 1:0:0 --txn {owners[-1].line}")
    overdue = teller.do("transactions begin --timeout 30s --label job=overdue")["txnId"]
    teller.do(f"produce orders -m overdue --txn {overdue}")
    teller.stop(owners[2])
    for owner in (*owners[:2], owners[3]):
        owner.kill()
    teller.wait(300)
    look_around(teller)
    look_at_topic(teller, "orders")
    for txn in (*[owner.line for owner in owners], overdue):
        look_at_transaction(teller, txn)
    teller.look(
        "subscriptions show orders billing",
        "subscriptions lag orders --exit-code",
        "subscriptions pending orders billing",
        "tables stats balances",
        "transactions orphans --exit-code",
        "transactions slow --over 10s",
    )
    teller.do("report")
    teller.plan(f"transactions abort {owners[2].line} --yes --reason 'it is stopped'")
    owners[2].kill()
    teller.plan("transactions reap --yes -n 2")
    teller.do("transactions reap --yes", output="ndjson")
    look_around(teller)
