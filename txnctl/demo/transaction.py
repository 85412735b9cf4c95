"""One bank transaction: a line in the history of an account.

The names and the words in the columns are those of the Czech bank data (PKDD'99 Discovery Challenge), so that
a file of it and the generator's lines are one thing to everybody else.

Invariant, of a whole history in its order: the balance of a line is the balance on the account's line before
(0 before the first) plus `delta`. Money is in hellers; `amount` is what was asked for, `delta` the signed
change of the balance.
"""

from __future__ import annotations

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
"""What each operation is called in English. Interest is the operation with no name."""

COLUMNS = (
    "trans_id",
    "account_id",
    "date",
    "type",
    "operation",
    "amount",
    "balance",
    "k_symbol",
    "bank",
    "account",
    "acct_seq",
    "delta",
    "src",
)


class BankTransaction:
    """A line of an account's history; one attribute a column."""

    __slots__ = COLUMNS

    def __init__(
        self,
        trans_id: int,
        account_id: int,
        date: str,
        side: str,
        operation: str,
        amount: int,
        balance: int,
        k_symbol: str,
        bank: str,
        account: str,
        acct_seq: int,
        delta: int,
        src: str,
    ) -> None:
        self.trans_id = trans_id
        self.account_id = account_id
        self.date = date
        self.type = side
        self.operation = operation
        self.amount = amount
        self.balance = balance
        self.k_symbol = k_symbol
        self.bank = bank
        self.account = account
        self.acct_seq = acct_seq
        self.delta = delta
        self.src = src

    def __repr__(self) -> str:
        return f"BankTransaction({', '.join(f'{name}={getattr(self, name)!r}' for name in COLUMNS)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BankTransaction):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in COLUMNS)

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_remittance(self) -> bool:
        """Whether the money goes to an account at another bank."""
        return self.operation == REMITTANCE
