"""Request: `txnctl/demo/request.py`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.txnctl.bank_steps import HISTORY
from txnctl.demo.request import is_settlement, read_legs, read_request, requests_of, settlement_key

# --- requests ---------------------------------------------------------------------------------------------


def test_requests_carry_the_whole_change() -> None:
    """Read back, the requests of all lines sum up to the balances, and each has a name of its own."""
    names = Counter[tuple[str, int]]()
    totals = Counter[str]()
    for line in HISTORY:
        for request in requests_of(line):
            key, trans_id, delta = read_request(request.key.encode(), request.value)
            names[key, trans_id] += 1
            totals[key] += delta
    assert max(names.values()) == 1
    balances = {str(line.account_id): line.balance for line in HISTORY}
    assert {key: total for key, total in totals.items() if not is_settlement(key)} == balances
    remitted = sum(-line.delta for line in HISTORY if line.is_remittance)
    assert sum(total for key, total in totals.items() if is_settlement(key)) == remitted


def test_a_remittance_is_two_requests_that_cancel_out() -> None:
    """The account minus, the settlement account of the partner bank plus, at the same date."""
    line = next(line for line in HISTORY if line.is_remittance)
    account, partner = requests_of(line)
    assert (account.key, partner.key) == (str(line.account_id), settlement_key(line.bank))
    assert account.delta + partner.delta == 0
    assert account.event_time == partner.event_time


def test_both_legs_of_a_remittance_are_in_its_first_message() -> None:
    """A posting, which no batch can cut apart; the legs of all messages sum up to the same balances."""
    totals, deltas = Counter[str](), Counter[str]()
    for line in HISTORY:
        requests = requests_of(line)
        legs = [read_legs(request.value) for request in requests]
        if line.is_remittance:
            account, partner = str(line.account_id), settlement_key(line.bank)
            assert legs == [[(account, line.delta), (partner, -line.delta)], [(partner, 0)]]
        for request, of_request in zip(requests, legs, strict=True):
            deltas[request.key] += request.delta
            for name, amount in of_request:
                totals[name] += amount
    assert totals == deltas
    with pytest.raises(ValueError, match="not a bank request"):
        read_legs(b'{"delta": "1.00"}')


@pytest.mark.parametrize(
    "value", [None, b"", b"{}", b"[]", b'{"id":1,"delta":"x"}', b"\xff", b'{"id":null,"delta":"1"}']
)
def test_what_is_no_request_is_told_apart(value: bytes | None) -> None:
    """A message that somebody else sent is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - what kind it is does not matter
        read_request(b"17", value)
