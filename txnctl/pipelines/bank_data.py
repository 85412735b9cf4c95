"""The bank's own lines as CSV, read without Spark: balances by account, and changes by day.

The CSV is that of `pipeline ingest`, by the same reading, on Spark and here.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from storage.errors import BadInput
from txnctl.files import csv_rows
from txnctl.files.byte_lines import bad_line
from txnctl.files.csv_rows import PLAIN
from txnctl.files.listing import COMPRESSED
from txnctl.pipelines.hellers import parse_hellers

COLUMNS = ("account_id", "acct_seq", "date", "balance")
_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")


class BankLine(NamedTuple):
    """A line: account, its number within the account, day, balance in hundredths; None where there is none."""

    account: str | None
    seq: int | None
    day: str | None
    balance: int | None


def is_plain(path: str) -> bool:
    """Report whether a path is one file as it is, neither a directory nor compressed."""
    return os.path.isfile(path) and not path.lower().endswith(COMPRESSED)


def check_columns(path: str) -> None:
    """Check that a file has the columns of bank data.

    Raises:
        BadInput
    """
    indexes_of(path, csv_rows.read_header(path, PLAIN).names)


def read_lines(path: str) -> Iterator[BankLine]:
    """Read the lines of a file.

    Raises:
        BadInput: the header lacks a column, or a line is malformed.
    """
    header = csv_rows.read_header(path, PLAIN)
    indexes = indexes_of(path, header.names)
    for row in csv_rows.read_rows(path, header, PLAIN):
        if row.problem is not None:
            raise bad_line(path, row.number, row.problem)
        account, seq, day, balance = (row.fields[index] for index in indexes)
        number = int(seq) if seq is not None and _NUMBER.fullmatch(seq) else None
        yield BankLine(account, number, day, _hellers(balance))


def indexes_of(path: str, header: Sequence[str]) -> list[int]:
    """The places of COLUMNS in a header, in letters of either case.

    Raises:
        BadInput: a column is missing.
    """
    names = [name.lower() for name in header]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise BadInput(
            f"{path} has no column {missing[0]}",
            hint=f"Bank data have a header with {', '.join(COLUMNS)}.",
            path=path,
        )
    return [names.index(name) for name in COLUMNS]


def _hellers(text: str | None) -> int | None:
    try:
        return None if text is None else parse_hellers(text)
    except ValueError:
        return None


def last_balances(lines: Iterable[BankLine]) -> dict[bytes | None, int | None]:
    """Return the balance of each account's line of the highest number; None where that is no amount."""
    last: dict[bytes | None, tuple[int, int | None]] = {}
    for line in lines:
        account = None if line.account is None else line.account.encode()
        known = last.setdefault(account, (-(1 << 62), None))
        if line.seq is not None and line.seq >= known[0]:
            last[account] = line.seq, line.balance
    return {account: balance for account, (_, balance) in last.items()}


def changes_by_day(lines: Iterable[BankLine]) -> dict[str, int]:
    """Add up, by day, each balance minus the one before of the same account."""
    by_account: dict[str | None, list[BankLine]] = {}
    for line in lines:
        by_account.setdefault(line.account, []).append(line)
    changes: Counter[str] = Counter()
    for account_lines in by_account.values():
        before = 0
        for line in sorted(account_lines, key=lambda line: (line.seq is not None, line.seq or 0)):
            if line.balance is not None:
                changes[line.day or ""] += line.balance - before
            before = line.balance or 0
    return changes
