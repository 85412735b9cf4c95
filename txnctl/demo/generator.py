"""Bank transactions from a seed, in the shape of the Czech bank data: whole histories of `accounts` accounts.

The generated data resembles the real data in: columns and words; accounts opened with cash, from 0, in the course of
two and a half years and followed for one to two; about six lines a month and account; the shares of the operations; the
size of the amounts; standing orders to the same partner each month; interest and fees on the last day of a month; a few
accounts that are overdrawn now and then and pay penalty interest.

Invariants: lines come sorted by date, then account, then order in the account; the running sum of `delta` of an account
is its `balance` on every line. The same seed gives the same lines everywhere: of the random generator only `random()`
is used, whose sequence Python guarantees, and amounts are computed by plus and times alone. The lines of an account
depend on the seed and its number, not on the number of accounts.

Lines are made a month at a time, so memory grows with the accounts, not with the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from random import Random
from typing import NamedTuple

from txnctl.demo.transaction import (
    CARD,
    CASH_DEBIT,
    CASH_IN,
    CASH_OUT,
    COLLECTION,
    CREDIT,
    DEBIT,
    INTEREST,
    REMITTANCE,
    BankTransaction,
)

ACCOUNTS_DEFAULT = 160
"""About 20,000 lines."""

SEED_DEFAULT = 298

FIRST_YEAR = 1995
_MONTHS = 45
"""January 1995 to September 1998."""
_OPENING_MONTHS = 28
_BANKS = ("AB", "CD", "EF", "GH", "IJ", "KL", "MN", "OP", "QR", "ST", "UV", "WX", "YZ")
_SOURCE = "G"
"""The `src` column: marks generated lines, never to be taken for the real data."""

_CROWN = 100
"""Hellers."""

# Amounts in crowns at the 0, 10, 25, 50, 75, 90 and 100 % of each operation's distribution.
_SHARES = (0.0, 0.10, 0.25, 0.50, 0.75, 0.90, 1.0)
_CASH_IN_CROWNS = (100, 2_100, 7_300, 16_000, 28_000, 41_000, 49_900)
_COLLECTION_CROWNS = (11_200, 15_200, 20_500, 30_000, 43_800, 49_200, 74_600)
_LARGE_CASH_CROWNS = (2_000, 4_200, 7_100, 11_800, 17_800, 22_200, 24_900)
_CARD_CROWNS = (500, 1_400, 2_000, 2_500, 3_400, 3_900, 7_500)
_ORDER_CROWNS = {
    "SIPO": (240, 1_750, 2_900, 4_700, 7_000, 9_200, 14_800),
    " ": (4, 160, 420, 1_100, 2_700, 5_500, 11_700),
    "POJISTNE": (2, 16, 120, 480, 990, 3_900, 7_800),
}
_ORDER_SYMBOLS = ("SIPO", " ", "POJISTNE", " ")
"""The purposes of an account's first, second, third and fourth standing order."""

_ORDERS_BELOW = (0.35, 0.60, 0.80, 0.92)
"""The shares of accounts without a standing order, with at most one, two, three."""

_FEE = 1_460
_OVERDRAFT_MAX = 17_000 * _CROWN


def generate(accounts: int = ACCOUNTS_DEFAULT, seed: int = SEED_DEFAULT) -> Iterator[BankTransaction]:
    """Generate the histories of `accounts` accounts, about 125 lines each, in file order."""
    if accounts < 1:
        raise ValueError("at least one account is needed")
    open_accounts = [_Account(number, seed) for number in range(accounts)]
    trans_id = 0
    for month in range(_MONTHS):
        first, last = _days(month)
        lines: list[BankTransaction] = []
        for account in open_accounts:
            if account.first_month <= month <= account.last_month:
                lines += account.lines_of_month(month, first, last)
        lines.sort(key=_file_order)
        for line in lines:
            trans_id += 1
            line.trans_id = trans_id
            yield line


def _file_order(line: BankTransaction) -> tuple[str, int, int]:
    return line.date, line.account_id, line.acct_seq


def _days(month: int) -> tuple[int, int]:
    """Return the first and the last day of a month, as ordinals; month 0 is January of the first year."""
    year, index = divmod(month, 12)
    next_year, next_index = divmod(month + 1, 12)
    first = date(FIRST_YEAR + year, index + 1, 1)
    return first.toordinal(), date(FIRST_YEAR + next_year, next_index + 1, 1).toordinal() - 1


class _StandingOrder:
    """A standing order: the same amount to the same partner each month."""

    __slots__ = ("account", "amount", "bank", "day", "symbol")

    def __init__(self, random: Random, symbol: str) -> None:
        self.symbol = symbol
        self.amount = _drawn(random, _ORDER_CROWNS[symbol])
        self.day = _whole(random, 4, 14)
        self.bank, self.account = _partner(random)


class _Movement(NamedTuple):
    """Money that comes in or goes out; the columns of its line."""

    side: str
    operation: str
    amount: int
    k_symbol: str = ""
    bank: str = ""
    account: str = ""


class _Account:
    """An account: its habits, fixed when opened, and its state, which each line advances."""

    __slots__ = (
        "account_id",
        "balance",
        "comfort",
        "employer",
        "first_month",
        "has_card",
        "last_month",
        "lines",
        "orders",
        "orders_from",
        "overdraws",
        "random",
        "salary",
        "salary_day",
        "seq",
    )

    def __init__(self, number: int, seed: int) -> None:
        self.random = random = Random(f"{seed}/{number}")
        self.account_id = 1 + 7 * number + _whole(random, 0, 6)
        self.first_month = _whole(random, 0, _OPENING_MONTHS)
        self.last_month = min(_MONTHS - 1, self.first_month + _whole(random, 11, 26))
        self.salary = _drawn(random, _COLLECTION_CROWNS) if random.random() < 0.33 else 0
        self.salary_day = _whole(random, 5, 14)
        self.employer = _partner(random)
        self.comfort = _whole(random, 15_000, 65_000) * _CROWN
        share = random.random()
        count = sum(share > below for below in _ORDERS_BELOW)
        self.orders = [_StandingOrder(random, symbol) for symbol in _ORDER_SYMBOLS[:count]]
        self.orders_from = self.first_month + _whole(random, 1, 6)
        self.overdraws = random.random() < 0.04
        self.has_card = random.random() < 0.06
        self.balance = 0
        self.seq = 0
        self.lines: list[BankTransaction] = []

    def lines_of_month(self, lines_of_month: int, first: int, last: int) -> list[BankTransaction]:
        """Generate the lines of one month, given its first and last day."""
        self.lines = []
        start = first
        if lines_of_month == self.first_month:
            start = first + _whole(self.random, 0, 19)
            self._line(start, _Movement(CREDIT, CASH_IN, _whole(self.random, 2, 11) * 100 * _CROWN))
        plan = self._income(start, last) + self._spending(start, last)
        if lines_of_month >= self.orders_from:
            plan += [(min(first + order.day, last), 1, order) for order in self.orders]
        for day, _, action in sorted(plan, key=_by_day):
            self._act(day, action)
        self._close_month(lines_of_month, last)
        return self.lines

    def _income(self, first: int, last: int) -> list[tuple[int, int, object]]:
        random = self.random
        plan: list[tuple[int, int, object]] = []
        deposits = 1 + (random.random() < 0.48)
        if self.salary:
            deposits = int(random.random() < 0.12)
            if first + self.salary_day <= last:
                plan.append((first + self.salary_day, 0, COLLECTION))
        return plan + [(_whole(random, first, last), 0, CASH_IN) for _ in range(deposits)]

    def _spending(self, first: int, last: int) -> list[tuple[int, int, object]]:
        random = self.random
        plan: list[tuple[int, int, object]] = [
            (_whole(random, first, last), 2, CASH_OUT) for _ in range(1 + int(random.random() * 3.3))
        ]
        if random.random() < 0.21:
            plan.append((_whole(random, first, last), 3, CASH_DEBIT + DEBIT))
        if self.has_card and random.random() < 0.3:
            plan.append((_whole(random, first, last), 4, CARD))
        return plan

    def _act(self, day: int, action: object) -> None:
        """Perform one planned action, as far as the balance allows."""
        random = self.random
        if isinstance(action, _StandingOrder):
            if self._can_spend(action.amount):
                partner = (action.bank, action.account)
                self._line(day, _Movement(DEBIT, REMITTANCE, action.amount, action.symbol, *partner))
        elif action == COLLECTION:
            extra = self.salary // 200 * _CROWN if random.random() < 0.08 else 0
            self._line(day, _Movement(CREDIT, COLLECTION, self.salary + extra, "", *self.employer))
        elif action == CASH_IN:
            self._line(day, _Movement(CREDIT, CASH_IN, _drawn(random, _CASH_IN_CROWNS)))
        elif action == CARD:
            self._spend(day, _Movement(DEBIT, CARD, _drawn(random, _CARD_CROWNS), account="0"))
        elif action == CASH_OUT:
            self._spend(day, _Movement(DEBIT, CASH_OUT, self._withdrawal_amount()))
        else:
            self._spend(day, _Movement(CASH_DEBIT, CASH_OUT, _drawn(random, _LARGE_CASH_CROWNS)))

    def _withdrawal_amount(self) -> int:
        """Choose an amount that brings the balance to the comfortable level in two or three withdrawals, else a little.

        Whole hundreds of crowns.
        """
        excess = self.balance - self.comfort
        part = excess if excess > 0 else self.balance if self.balance > 0 else 0
        weight = 0.25 + 0.5 * self.random.random() if excess > 0 else 0.04 + 0.20 * self.random.random()
        withdrawal = int(part * weight)
        if self.overdraws and self.random.random() < 0.15:
            withdrawal = max(self.balance, 0) + int(self.random.random() * _OVERDRAFT_MAX / 4)
        return max(2, withdrawal // (100 * _CROWN)) * 100 * _CROWN

    def _can_spend(self, amount: int) -> bool:
        return self.balance - amount >= (-_OVERDRAFT_MAX if self.overdraws else 100 * _CROWN)

    def _spend(self, day: int, movement: _Movement) -> None:
        if self._can_spend(movement.amount):
            self._line(day, movement)

    def _close_month(self, lines_of_month: int, last: int) -> None:
        """Add interest on the balance, of 4.3 % a year, or penalty interest; after the first months a fee."""
        interest = abs(self.balance) * 43 // 12_000
        if self.balance < 0:
            self._line(last, _Movement(DEBIT, CASH_OUT, max(10, interest), "SANKC. UROK"))
        elif interest:
            self._line(last, _Movement(CREDIT, INTEREST, interest, "UROK"))
        if lines_of_month > self.first_month + 4 and self.balance > _FEE:
            fee = _FEE if self.random.random() < 0.85 else 30 * _CROWN
            self._line(last, _Movement(DEBIT, CASH_OUT, fee, "SLUZBY"))

    def _line(self, day: int, movement: _Movement) -> None:
        side, operation, amount, k_symbol, bank, account = movement
        delta = amount if side == CREDIT else -amount
        self.balance += delta
        self.seq += 1
        text = date.fromordinal(day).isoformat()
        self.lines.append(
            BankTransaction(
                0, self.account_id, text, side, operation, amount, self.balance, k_symbol, bank, account, self.seq,
                delta, _SOURCE,
            )
        )  # fmt: skip


def _by_day(planned: tuple[int, int, object]) -> tuple[int, int]:
    return planned[0], planned[1]


def _whole(random: Random, lowest: int, highest: int) -> int:
    """Draw a whole number, both ends included."""
    return lowest + int(random.random() * (highest - lowest + 1))


def _partner(random: Random) -> tuple[str, str]:
    """Draw an account at another bank."""
    return _BANKS[_whole(random, 0, len(_BANKS) - 1)], str(_whole(random, 1_000_000, 99_999_999))


def _drawn(random: Random, crowns: tuple[int, ...]) -> int:
    """Draw an amount of whole crowns, in hellers, from a table of the quantiles at `_SHARES`."""
    share = random.random()
    upper = 1
    while share > _SHARES[upper]:
        upper += 1
    low, high = crowns[upper - 1], crowns[upper]
    within = (share - _SHARES[upper - 1]) / (_SHARES[upper] - _SHARES[upper - 1])
    return (low + int(within * (high - low))) * _CROWN
