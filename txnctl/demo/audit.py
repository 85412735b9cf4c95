"""What must be true when the bank has closed: held against the data, and read from the store anew.

E remembers nothing that could be asked. The balances are those of the table `accounts`, the bookings those of the topic
`balances`: a READ_COMMITTED reader finds only what was committed together with the acknowledgement of its request.
"""

from __future__ import annotations

from collections import Counter

from storage import EARLIEST, IsolationLevel, Store
from storage.json_form import to_json
from txnctl.demo.clients import REQUESTS, Booking, MonitorD, balances, bookings
from txnctl.demo.narrator import Narrator
from txnctl.demo.request import is_settlement, requests_of, settlement_key
from txnctl.demo.script import Script, messages_of, remitted_by_bank
from txnctl.pipelines.hellers import format_hellers

_SHOWN = 5


def audit(
    store: Store, script: Script, monitor: MonitorD, aborted: int, narrator: Narrator
) -> dict[str, object]:
    """Hold everything that must be true, and give the numbers. `aborted` is the messages of aborted transactions."""
    booked, found = bookings(store), balances(store)
    facts = _audit_accounts(found, script, narrator)
    facts |= _audit_partners(found, script, narrator)
    facts |= _audit_once(booked, script, narrator)
    last = {booking.key: booking.balance for booking in booked}
    agree = sum(found.get(key) == balance for key, balance in last.items())
    narrator.check("balances in the table that the last booking on the topic says too", len(found), agree)
    facts |= _audit_levels(store, script, monitor, aborted, narrator)
    problems = to_json(store.maintenance.verify_store())
    narrator.check("problems that the full verification of the store finds", 0, len(problems))
    for problem in problems[:_SHOWN]:
        narrator.say(f"{problem['invariant']}: {problem['object']}: {problem['message']}")
    return facts | {"problems": len(problems)}


def disagreements(found: dict[str, int], expected: dict[str, int]) -> list[str]:
    """Name the accounts whose balance is not the expected one; no other account may have one."""
    return sorted(
        key
        for key in expected.keys() | found.keys()
        if not is_settlement(key) and found.get(key) != expected.get(key)
    )


def check_balances(what: str, found: dict[str, int], expected: dict[str, int], narrator: Narrator) -> int:
    """Hold balances against the data's own; give how many accounts agree."""
    wrong = disagreements(found, expected)
    agree = len(expected.keys() - set(wrong))
    if not narrator.check(
        what, _of(len(expected), len(expected)), _of(len(expected) - len(wrong), len(expected))
    ):
        for key in wrong[:_SHOWN]:
            has, should = (
                "none" if side.get(key) is None else format_hellers(side[key]) for side in (found, expected)
            )
            narrator.say(f"account {key}: the table has {has}, the data says {should}")
    return agree


def _of(number: int, total: int) -> str:
    return f"{number:,} of {total:,} accounts"


def _audit_accounts(found: dict[str, int], script: Script, narrator: Narrator) -> dict[str, object]:
    expected = script.balances_at_end()
    agree = check_balances("balance equals the data's own balance column", found, expected, narrator)
    return {"accounts": len(expected), "accountsAgreeing": agree}


def _audit_partners(found: dict[str, int], script: Script, narrator: Narrator) -> dict[str, object]:
    """A settlement account holds what was remitted to its bank; together they cancel the remittances out."""
    settled = {key: balance for key, balance in found.items() if is_settlement(key)}
    expected = {settlement_key(bank): total for bank, total in remitted_by_bank(script.lines).items()}
    total = sum(line.delta for line in script.lines if line.is_remittance)
    right = sum(settled.get(key) == balance for key, balance in expected.items())
    narrator.check(
        "other banks whose settlement account holds what was remitted to them", len(expected), right
    )
    narrator.check(
        "settlement accounts together, which is the remittances negated",
        format_hellers(-total, grouped=True),
        format_hellers(sum(settled.values()), grouped=True),
    )
    return {"partnerBanks": len(expected), "settled": format_hellers(sum(settled.values()))}


def _audit_once(booked: list[Booking], script: Script, narrator: Narrator) -> dict[str, object]:
    """Every request of the data is booked, and once."""
    times = Counter((booking.key, booking.trans_id) for booking in booked)
    asked = {(request.key, request.trans_id) for line in script.lines for request in requests_of(line)}
    narrator.check("requests booked", messages_of(script.lines), len(booked))
    narrator.check("requests booked twice", 0, sum(number > 1 for number in times.values()))
    narrator.check("requests of the data never booked", 0, len(asked - times.keys()))
    narrator.check("bookings of what is not in the data", 0, len(times.keys() - asked))
    return {"requestsBooked": len(booked)}


def _audit_levels(
    store: Store, script: Script, monitor: MonitorD, aborted: int, narrator: Narrator
) -> dict[str, object]:
    """D saw every message once, those of aborted transactions too; two new readers see what their level promises."""
    committed = messages_of(script.lines)
    seen = sum(monitor.seen.values())
    narrator.check("messages D saw, the aborted transfer included", committed + aborted, seen)
    narrator.check("messages D saw twice", 0, seen - len(monitor.seen))
    at_committed = _read(store, IsolationLevel.READ_COMMITTED)
    at_uncommitted = _read(store, IsolationLevel.READ_UNCOMMITTED)
    narrator.check("messages a new READ_COMMITTED reader finds", committed, len(at_committed))
    narrator.check("messages a new READ_UNCOMMITTED reader finds", committed + aborted, len(at_uncommitted))
    later = iter(at_uncommitted)
    in_order = all(message_id in later for message_id in at_committed)
    narrator.check("the first is part of the second, in the same order", True, in_order)
    return {"monitorSaw": seen, "committedMessages": len(at_committed), "storedMessages": len(at_uncommitted)}


def _read(store: Store, level: IsolationLevel) -> list[str]:
    reader = store.reader(REQUESTS, start=EARLIEST, isolation_level=level)
    found: list[str] = []
    while messages := reader.read_batch(1000):
        found += [str(message.message_id) for message in messages]
    return found
