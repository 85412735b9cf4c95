"""Bank transactions from a CSV file, plain or gzip, every line checked.

A line is rejected, by number, when a column is missing or malformed, when the `trans_id` appeared on an earlier line,
and when the balance is not the account's previous balance plus `delta`. So a file read to the end is consistent, and a
later difference of a balance is not the fault of the file.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from datetime import date

from storage.errors import BadLine
from txnctl.demo.transaction import COLUMNS, CREDIT, KINDS, TYPES, BankTransaction
from txnctl.input.csv_text import csv_records
from txnctl.input.source import Source
from txnctl.pipelines.hellers import format_hellers, parse_hellers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gzip import GzipFile
    from io import BufferedReader

LINES_MAX = 2_000_000
LINE_BYTES_MAX = 10_000
_DIGITS_MAX = 15
_GZIP_MAGIC = b"\x1f\x8b"
_FIRST_DATE = "1970-01-01"


def read_bank_csv(path: str) -> Iterator[BankTransaction]:
    """Read the transactions of a file in its order. BadLine names the first invalid line."""
    with Source.open(path).stream() as raw:
        if raw.peek(2)[:2] == _GZIP_MAGIC:
            with gzip.open(raw) as unzipped:
                yield from _transactions(unzipped, path)
        else:
            yield from _transactions(raw, path)


def _transactions(file: BufferedReader | GzipFile, path: str) -> Iterator[BankTransaction]:
    records = _records(_text_lines(file, path), path)
    _, names = next(records, (1, []))
    column_indexes = _header(names, path)
    history = _History()
    for number, fields in records:
        try:
            transaction = _transaction(fields, column_indexes)
            history.add_line(transaction)
        except ValueError as error:
            raise _bad_line(path, number, str(error)) from error
        yield transaction


def _text_lines(file: BufferedReader | GzipFile, path: str) -> Iterator[bytes]:
    """The lines, each UTF-8 and of a bounded length; errors name the line."""
    number = 1
    while True:
        try:
            line = file.readline(LINE_BYTES_MAX + 1)
            line.decode()
        except UnicodeDecodeError as error:
            raise _bad_line(path, number, "it is not UTF-8 text") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _bad_line(path, number, f"the compressed file is damaged from here on ({error})") from error
        if not line:
            return
        if len(line) > LINE_BYTES_MAX:
            raise _bad_line(path, number, f"it is longer than {LINE_BYTES_MAX:,} bytes")
        if number > LINES_MAX:
            raise _bad_line(path, number, f"at most {LINES_MAX:,} lines are read")
        yield line
        number += 1


def _records(lines: Iterator[bytes], path: str) -> Iterator[tuple[int, list[str]]]:
    """Return the fields of each non-empty line, with the number of the line on which the fields begin."""
    for number, fields, problem, _ in csv_records(lines):
        if problem is not None:
            raise _bad_line(path, number, problem)
        yield number, fields


def _bad_line(path: str, number: int, problem: str) -> BadLine:
    return BadLine(f"{path}: line {number:,}: {problem}", path=path, lineNumber=number)


def _header(names: list[str], path: str) -> list[int]:
    """Return the index of each of COLUMNS; further columns are ignored."""
    missing = [column for column in COLUMNS if column not in names]
    if missing:
        error = _bad_line(path, 1, f"no column {', '.join(missing)}")
        error.hint = f"the first line must name the columns: {','.join(COLUMNS)}"
        raise error
    return [names.index(column) for column in COLUMNS]


def _transaction(fields: list[str], column_indexes: list[int]) -> BankTransaction:
    if len(fields) <= max(column_indexes):
        raise ValueError(f"{len(fields)} fields, the header names {max(column_indexes) + 1}")
    (trans_id, account_id, day, side, operation, amount, balance, symbol, bank, account, seq, delta, src) = (
        fields[index] for index in column_indexes
    )
    if side not in TYPES:
        raise ValueError(f"type {side!r} is none of {', '.join(sorted(TYPES))}")
    if operation not in KINDS:
        known = ", ".join(sorted(filter(None, KINDS)))
        raise ValueError(f"operation {operation!r} is none of {known}, nor empty (interest)")
    transaction = BankTransaction(
        _number("trans_id", trans_id),
        _number("account_id", account_id),
        _date(day),
        side,
        operation,
        _money("amount", amount),
        _money("balance", balance),
        symbol,
        bank,
        account,
        _number("acct_seq", seq),
        _money("delta", delta),
        src,
    )
    if transaction.delta and (transaction.delta > 0) != (side == CREDIT):
        raise ValueError(f"delta {delta} has the wrong sign for type {side}")
    if transaction.is_remittance and not bank:
        raise ValueError("a remittance that names no bank")
    return transaction


def _number(column: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise ValueError(f"{column} {text!r} is not a whole number")
    return int(text)


def _money(column: str, text: str) -> int:
    try:
        return parse_hellers(text)
    except ValueError:
        raise ValueError(f"{column} {text!r} is not an amount with at most two decimals") from None


def _date(text: str) -> str:
    try:
        valid = date.fromisoformat(text).isoformat() == text
    except ValueError:
        valid = False
    if not valid or text < _FIRST_DATE:
        raise ValueError(f"date {text!r} is not YYYY-MM-DD from 1970 on")
    return text


class _History:
    """The part of the read lines that a later line could contradict."""

    __slots__ = ("_balances", "_ids")

    def __init__(self) -> None:
        self._balances: dict[int, int] = {}
        self._ids: set[int] = set()

    def add_line(self, transaction: BankTransaction) -> None:
        if transaction.trans_id in self._ids:
            raise ValueError(f"trans_id {transaction.trans_id} stands on an earlier line too")
        before = self._balances.get(transaction.account_id, 0)
        if before + transaction.delta != transaction.balance:
            raise ValueError(
                f"account {transaction.account_id} had {format_hellers(before)} and changes by "
                f"{format_hellers(transaction.delta)}, but balance is {format_hellers(transaction.balance)}"
            )
        self._ids.add(transaction.trans_id)
        self._balances[transaction.account_id] = transaction.balance
