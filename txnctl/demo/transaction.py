"""A bank transaction: a line in the history of an account.

Column names and values are those of the Czech bank data (PKDD'99 Discovery Challenge), so that a file of that data and
generated lines can be used alike.

Invariant, of a whole history in its order: the balance of a line is the balance on the account's line before (0 before
the first) plus `delta`. Money is in hellers; `amount` is the requested amount, `delta` the signed change of the
balance.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

CREDIT = "PRIJEM"
DEBIT = "VYDAJ"
CASH_DEBIT = "VYBER"
TYPES = frozenset((CREDIT, DEBIT, CASH_DEBIT))

CASH_IN = "VKLAD"
CASH_OUT = "VYBER"
CARD = "VYBER KARTOU"
REMITTANCE = "PREVOD NA UCET"
COLLECTION = "PREVOD Z UCTU"
INTEREST = ""
KINDS = {
    CASH_IN: "deposit",
    CASH_OUT: "withdrawal",
    CARD: "card withdrawal",
    REMITTANCE: "remittance",
    COLLECTION: "collection",
    INTEREST: "interest",
}
"""English names of the operations. Interest is the operation with no name."""


@dataclass(slots=True)
class BankTransaction:
    """A line of an account's history; a field for each column of the file, in order."""

    trans_id: int
    account_id: int
    date: str
    type: str
    operation: str
    amount: int
    balance: int
    k_symbol: str
    bank: str
    account: str
    acct_seq: int
    delta: int
    src: str

    @property
    def is_remittance(self) -> bool:
        """Whether the money goes to an account at another bank."""
        return self.operation == REMITTANCE


COLUMNS = tuple(field.name for field in fields(BankTransaction))
