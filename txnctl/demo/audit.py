"""The final checks of the bank: compared with the data, and read from the store anew.

Balances come from the table `accounts`, bookings from the topic `balances`: a READ_COMMITTED reader finds only bookings
committed together with the acknowledgement of their request.
"""

from __future__ import annotations

from collections import Counter

from storage import EARLIEST, IsolationLevel, Store
from txnctl.demo.clients import REQUESTS, Booking, MonitorD, balances, bookings
from txnctl.demo.facts import AuditFacts, BookFacts, LevelFacts
from txnctl.demo.narrator import Narrator
from txnctl.demo.request import is_settlement, requests_of, settlement_key
from txnctl.demo.script import Script, messages_of, remitted_by_bank
from txnctl.pipelines.hellers import format_hellers

_SHOWN = 5


def audit(store: Store, script: Script, monitor: MonitorD, aborted: int, narrator: Narrator) -> AuditFacts:
    """Check every condition that must hold, and return the numbers. `aborted` counts the messages of aborted
    transactions.
    """
    books = audit_books(store, script, narrator)
    levels = _audit_levels(store, script, monitor, aborted, narrator)
    return AuditFacts(*books, levels=levels, problems=audit_store(store, narrator))


def audit_books(store: Store, script: Script, narrator: Narrator) -> BookFacts:
    """Check balances and bookings against the data."""
    booked, table_balances = bookings(store), balances(store)
    expected = script.balances_at_end()
    agreeing = check_balances(
        "balance equals the data's own balance column", table_balances, expected, narrator
    )
    partner_banks, settled = _audit_partners(table_balances, script, narrator)
    _audit_once(booked, script, narrator)
    last = {booking.key: booking.balance for booking in booked}
    agree = sum(table_balances.get(key) == balance for key, balance in last.items())
    narrator.check_equal(
        "balances in the table that the last booking on the topic says too", len(table_balances), agree
    )
    return BookFacts(len(expected), agreeing, partner_banks, settled, len(booked))


def audit_store(store: Store, narrator: Narrator) -> int:
    """Verify the store in full, and return the number of problems."""
    problems = store.maintenance.verify_store()
    narrator.check_equal("problems that the full verification of the store finds", 0, len(problems))
    for problem in problems[:_SHOWN]:
        narrator.say(f"{problem.invariant}: {problem.object}: {problem.message}")
    return len(problems)


def disagreements(actual: dict[str, int], expected: dict[str, int]) -> list[str]:
    """Return the accounts whose balance differs from the expected balance, unexpected accounts included."""
    return sorted(
        key
        for key in expected.keys() | actual.keys()
        if not is_settlement(key) and actual.get(key) != expected.get(key)
    )


def check_balances(name: str, actual: dict[str, int], expected: dict[str, int], narrator: Narrator) -> int:
    """Compare balances with the data's own; return how many accounts agree."""
    wrong = disagreements(actual, expected)
    agree = len(expected.keys() - set(wrong))
    if not narrator.check_equal(
        name, _of(len(expected), len(expected)), _of(len(expected) - len(wrong), len(expected))
    ):
        for key in wrong[:_SHOWN]:
            has_text, should_text = (
                "none" if side.get(key) is None else format_hellers(side[key]) for side in (actual, expected)
            )
            narrator.say(f"account {key}: the table has {has_text}, the data says {should_text}")
    return agree


def _of(number: int, total: int) -> str:
    return f"{number:,} of {total:,} accounts"


def _audit_partners(table_balances: dict[str, int], script: Script, narrator: Narrator) -> tuple[int, str]:
    """Check the settlement accounts: each has the remittances to its bank; the sum cancels the remittances out.

    Returns the number of banks, and the sum as text.
    """
    settled = {key: balance for key, balance in table_balances.items() if is_settlement(key)}
    expected = {settlement_key(bank): total for bank, total in remitted_by_bank(script.lines).items()}
    total = sum(line.delta for line in script.lines if line.is_remittance)
    right = sum(settled.get(key) == balance for key, balance in expected.items())
    narrator.check_equal(
        "other banks whose settlement account holds what was remitted to them", len(expected), right
    )
    narrator.check_equal(
        "settlement accounts together, which is the remittances negated",
        format_hellers(-total, grouped=True),
        format_hellers(sum(settled.values()), grouped=True),
    )
    return len(expected), format_hellers(sum(settled.values()))


def _audit_once(booked: list[Booking], script: Script, narrator: Narrator) -> None:
    """Check that every request of the data is booked once."""
    times = Counter((booking.key, booking.trans_id) for booking in booked)
    requested = {(request.key, request.trans_id) for line in script.lines for request in requests_of(line)}
    narrator.check_equal("requests booked", messages_of(script.lines), len(booked))
    narrator.check_equal("requests booked twice", 0, sum(number > 1 for number in times.values()))
    narrator.check_equal("requests of the data never booked", 0, len(requested - times.keys()))
    narrator.check_equal("bookings of what is not in the data", 0, len(times.keys() - requested))


def _audit_levels(
    store: Store, script: Script, monitor: MonitorD, aborted: int, narrator: Narrator
) -> LevelFacts:
    """Check that D saw every message once, aborted included, and that new readers read as their level promises."""
    committed = messages_of(script.lines)
    seen = sum(monitor.seen.values())
    narrator.check_equal("messages D saw, the aborted transfer included", committed + aborted, seen)
    narrator.check_equal("messages D saw twice", 0, seen - len(monitor.seen))
    at_committed = _read(store, IsolationLevel.READ_COMMITTED)
    at_uncommitted = _read(store, IsolationLevel.READ_UNCOMMITTED)
    narrator.check_equal("messages a new READ_COMMITTED reader finds", committed, len(at_committed))
    narrator.check_equal(
        "messages a new READ_UNCOMMITTED reader finds", committed + aborted, len(at_uncommitted)
    )
    later = iter(at_uncommitted)
    in_order = all(message_id in later for message_id in at_committed)
    narrator.check_equal("the first is part of the second, in the same order", True, in_order)
    return LevelFacts(seen, len(at_committed), len(at_uncommitted))


def _read(store: Store, level: IsolationLevel) -> list[str]:
    reader = store.reader(REQUESTS, start=EARLIEST, isolation_level=level)
    message_ids: list[str] = []
    while messages := reader.read_batch(1000):
        message_ids += [str(message.message_id) for message in messages]
    return message_ids
