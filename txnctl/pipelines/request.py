"""The rule of a request to change balances: which messages are one, and the legs that each has.

A request is one message, and has one or more *legs*, each an account and a signed amount, a decimal with at most two
digits after the point, as text or as a number. All legs of a request are applied at once, or none. `RequestForm` says
where they stand. Settle, audit and monitor all call `legs_of`, on Spark in its tasks, without Spark in this process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from storage.errors import InvalidValue
from storage.limits import TABLE_KEY_BYTES_MAX
from txnctl.input.names_once import named_once
from txnctl.pipelines.hellers import parse_hellers

AMOUNT_DEFAULT = "delta"
PARTNER_PREFIX = "bank:"
"""Prefix of the key of a partner bank's settlement account; all other accounts are customers' (txnctl/demo/request.py).
"""

Leg = tuple[str, int]
"""An account, and the amount in hundredths that is added to its balance."""


@dataclass(frozen=True)
class RequestForm:
    """Where the legs of a request stand: in the key and one field, in three fields, or in a list.

    Attributes:
        amount: the field of the value's JSON, or of each object of the list, with the amount.
        debit, credit: fields with accounts: the amount is subtracted from the one and added to the other. Both or none.
        legs: a field with a list of objects, each with `account` and an amount.
    """

    amount: str = AMOUNT_DEFAULT
    debit: str | None = None
    credit: str | None = None
    legs: str | None = None

    def __post_init__(self) -> None:
        if (self.debit is None) != (self.credit is None) or (self.debit and self.legs):
            raise InvalidValue(
                "a request names its accounts by its key, by a debit and a credit field, or by a list of legs",
                hint="Give --debit with --credit, or --legs, or none of them.",
            )

    @property
    def wanted(self) -> str:
        """What a message of this form has, for the error about a message that is no request."""
        if self.legs is not None:
            return f"JSON with a list {self.legs!r} of objects, each with 'account' and an amount in {self.amount!r}"
        if self.debit is not None:
            return (
                f"JSON with accounts in {self.debit!r} and {self.credit!r}, and an amount in {self.amount!r}"
            )
        return f"a key, and JSON with an amount in {self.amount!r}"


KEYED = RequestForm()
"""The account is the key, the amount the field `delta`."""


def legs_of(key: bytes | None, value: bytes | None, form: RequestForm) -> list[Leg] | None:
    """Return the legs of a request; None for a message that is no request.

    The value is JSON in UTF-8 (RFC 8259, so neither NaN nor single quotes); a field stands once.
    An account is text or a number, and of 1 to 400 bytes, as the key of a row is; an amount is written with at
    most 15 digits before the point and two behind it, without an exponent.
    """
    try:
        fields = _fields(value)
        if form.legs is not None:
            return _listed(fields[form.legs], form.amount)
        hellers = _hellers(fields[form.amount])
        if form.debit is not None and form.credit is not None:
            return [(_account(fields[form.debit]), -hellers), (_account(fields[form.credit]), hellers)]
        return None if key is None else [(_account(key.decode()), hellers)]
    except (ValueError, KeyError, RecursionError, InvalidValue):
        return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


_JSON = json.JSONDecoder(
    parse_float=str, parse_int=str, parse_constant=_refuse_constant, object_pairs_hook=named_once
)
"""Numbers stay as written: an amount is decimal text, and an account 007 is not 7."""


def _fields(value: bytes | None) -> dict[str, Any]:
    fields = _JSON.decode((value or b"").decode())
    if not isinstance(fields, dict):
        raise ValueError("no object")
    return fields


def _listed(legs: object, amount: str) -> list[Leg] | None:
    if not isinstance(legs, list) or not all(isinstance(leg, dict) for leg in legs):
        return None
    return [(_account(leg["account"]), _hellers(leg[amount])) for leg in legs] or None


def _hellers(amount: object) -> int:
    if not isinstance(amount, str):
        raise ValueError("an amount is text or a number")
    return parse_hellers(amount)


def _account(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name.encode()) <= TABLE_KEY_BYTES_MAX:
        raise ValueError("an account is text, as long as the key of a row")
    return name


def is_customer(account: str) -> bool:
    """Report whether an account is a customer's."""
    return not account.startswith(PARTNER_PREFIX)
