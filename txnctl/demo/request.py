"""A bank transaction as messages of the request topic, and back.

Key: the account whose balance changes, as its number, or `bank:IJ`, a partner bank's settlement account. Value: JSON on
one line, readable in `txnctl consume`; `delta` is exact decimal text. Event time: the date, at midnight UTC. A
remittance is two requests, the account minus and the partner bank's settlement account plus, sent in one transaction.
No two requests share both `id` and key.

Settled are the `legs`, each an account and an amount. The first message of a remittance is a posting of both legs, and
its second message, the advice to the partner bank, moves nothing more: so no reader, who may take the two messages in
two parts, can book half a remittance (docs/decisions/0058).
"""

from __future__ import annotations

import json
from datetime import date

from txnctl.demo.transaction import KINDS, BankTransaction
from txnctl.pipelines.hellers import format_hellers, parse_hellers
from txnctl.pipelines.request import Leg, RequestForm, legs_of

_EPOCH = date(1970, 1, 1).toordinal()
_DAY_MS = 86_400_000
_SETTLEMENT = "bank:"

POSTING = RequestForm("delta", legs="legs")
"""Where the legs stand that are settled."""


class BalanceChange:
    """The request to change one balance: the message to be sent."""

    __slots__ = ("delta", "event_time", "key", "trans_id", "value")

    def __init__(self, key: str, trans_id: int, delta: int, event_time: int, value: bytes) -> None:
        self.key = key
        self.trans_id = trans_id
        self.delta = delta
        self.event_time = event_time
        self.value = value


def settlement_key(bank: str) -> str:
    """Return the key of a partner bank's settlement account."""
    return _SETTLEMENT + bank


def is_settlement(key: str) -> bool:
    """Report whether a key is a partner bank's, and not an account's."""
    return key.startswith(_SETTLEMENT)


def requests_of(transaction: BankTransaction) -> list[BalanceChange]:
    """Return the messages of a bank transaction: two for a remittance, else one."""
    key, delta = str(transaction.account_id), transaction.delta
    if not transaction.is_remittance:
        return [_request(transaction, key, delta, [(key, delta)])]
    partner = settlement_key(transaction.bank)
    return [
        _request(transaction, key, delta, [(key, delta), (partner, -delta)]),
        _request(transaction, partner, -delta, [(partner, 0)]),
    ]


def _request(transaction: BankTransaction, key: str, delta: int, legs: list[Leg]) -> BalanceChange:
    facts = {
        "id": transaction.trans_id,
        "date": transaction.date,
        "what": KINDS[transaction.operation],
        "delta": format_hellers(delta),
    }
    if transaction.bank and not is_settlement(key):
        facts["to" if delta < 0 else "from"] = f"{transaction.bank} {transaction.account}"
    elif is_settlement(key):
        facts["from"] = str(transaction.account_id)
    symbol = transaction.k_symbol.strip()
    if symbol:
        facts["symbol"] = symbol
    listed = [{"account": account, "delta": format_hellers(amount)} for account, amount in legs]
    event_time = (date.fromisoformat(transaction.date).toordinal() - _EPOCH) * _DAY_MS
    value = json.dumps({**facts, "legs": listed}, ensure_ascii=False, separators=(",", ":")).encode()
    return BalanceChange(key, transaction.trans_id, delta, event_time, value)


def read_request(key: bytes | None, value: bytes | None) -> tuple[str, int, int]:
    """Parse account, id and change from a message; ValueError if the message is not a request."""
    try:
        facts = json.loads(value or b"")
        return (key or b"").decode(), int(facts["id"]), parse_hellers(facts["delta"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a bank request: {value!r}") from error


def read_legs(value: bytes | None) -> list[Leg]:
    """Parse the legs of a request; ValueError if the message is not a request."""
    legs = legs_of(None, value, POSTING)
    if legs is None:
        raise ValueError(f"not a bank request: {value!r}")
    return legs
