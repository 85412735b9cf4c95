"""The bank's lines, divided into those before, during and after the transfer that stays open.

    opening      ordinary business
    transfer     the remittance that is left open in its transaction
    meanwhile    lines that arrive while the transfer is open
    closing      lines after the transfer

The parts are the lines in their order, none left out. So at the end of each part every account's balance is known: the
balance column of the account's last line so far.
"""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.demo.transaction import BankTransaction

_OPENING_SHARE = 0.4
_NEAR_SHARE = 0.01
"""The largest remittance is chosen among this share of the lines, from the first remittance after the opening on."""

_MEANWHILE_SHARE_OF_REST = 2 / 3


class Script:
    """Lines and their division."""

    __slots__ = ("_meanwhile_end", "_transfer_at", "lines")

    def __init__(self, lines: list[BankTransaction]) -> None:
        opening_lines = int(len(lines) * _OPENING_SHARE)
        remittances = [index for index, line in enumerate(lines) if line.is_remittance]
        if not remittances:
            raise InvalidValue(
                "there is no remittance (PREVOD NA UCET) among the transactions",
                hint="The demo leaves a remittance open; take more accounts, or another file.",
            )
        self.lines = lines
        # Standing orders come on a few days of a month: hundreds of lines may lie between two remittances.
        first = next((index for index in remittances if index >= opening_lines), remittances[-1])
        near = [index for index in remittances if first <= index <= first + len(lines) * _NEAR_SHARE]
        self._transfer_at = max(near, key=lambda index: lines[index].amount)
        rest = len(lines) - self._transfer_at - 1
        self._meanwhile_end = self._transfer_at + 1 + int(rest * _MEANWHILE_SHARE_OF_REST)

    @property
    def opening(self) -> list[BankTransaction]:
        """The lines before the transfer."""
        return self.lines[: self._transfer_at]

    @property
    def transfer(self) -> BankTransaction:
        """The line of the transfer that stays open."""
        return self.lines[self._transfer_at]

    @property
    def meanwhile(self) -> list[BankTransaction]:
        """The lines that arrive while the transfer is open."""
        return self.lines[self._transfer_at + 1 : self._meanwhile_end]

    @property
    def closing(self) -> list[BankTransaction]:
        """The lines after the transfer is committed."""
        return self.lines[self._meanwhile_end :]

    def balances_before_transfer(self) -> dict[str, int]:
        """Return every account's balance before the transfer, by the data."""
        return _balances(self.opening)

    def balances_after_meanwhile(self) -> dict[str, int]:
        """Return every account's balance after the transfer and the lines behind it, by the data."""
        return _balances(self.lines[: self._meanwhile_end])

    def balances_at_end(self) -> dict[str, int]:
        """Return every account's last balance."""
        return _balances(self.lines)


def messages_of(lines: list[BankTransaction]) -> int:
    """Count the requests: one for each line, two for a remittance."""
    return len(lines) + sum(line.is_remittance for line in lines)


def remitted_by_bank(lines: list[BankTransaction]) -> dict[str, int]:
    """Sum up the remittances to each partner bank."""
    totals: dict[str, int] = {}
    for line in lines:
        if line.is_remittance:
            totals[line.bank] = totals.get(line.bank, 0) - line.delta
    return totals


def _balances(lines: list[BankTransaction]) -> dict[str, int]:
    return {str(line.account_id): line.balance for line in lines}
