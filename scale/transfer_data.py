"""Transfers by a seed, in the shape of a money-laundering data set, and the files of four shapes that they come in.

A transfer has a time, a bank and an account on each side, an amount, a currency and a text of format. Amounts are of a
long tail, some accounts are busy, and texts have quotes, delimiters, line breaks and letters beyond ASCII. The same
seed gives the same transfers everywhere: of the random generator only `random()` is used.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from txnctl.pipelines.hellers import format_hellers

TRANSFERS = 117_805
_FIRST_MINUTE = 1_661_990_400 // 60
_CURRENCIES = ("US Dollar", "Euro", "Swiss Franc", "Yuan", "Kč")
_FORMATS = (
    "Cheque",
    "ACH",
    "Wire",
    "Credit Card",
    "Überweisung",
    "Reinvestment; quarterly",
    'Cash, "small notes"',
    "Chèque\nbarré",
    "Wire\r\nvia Zürich",
    "",
)


class Transfer(NamedTuple):
    """A line of the data; the amount is text with two decimals."""

    time: str
    from_bank: str
    from_account: str
    to_bank: str
    to_account: str
    amount: str
    currency: str
    format: str

    def value(self) -> bytes:
        """The message that the line becomes; an empty value is null, as in CSV without quotes."""
        fields = {name: text or None for name, text in self._asdict().items()}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def transfers(count: int, seed: int) -> Iterator[Transfer]:
    """Generate transfers, in the order of their times."""
    random = Random(f"transfers/{seed}")
    accounts = max(10, count // 4)
    minute = _FIRST_MINUTE
    for _ in range(count):
        minute += int(random.random() * 3)
        sides = [_side(random, accounts) for _ in range(2)]
        hellers = 1 + int(10 ** (2 + 7 * random.random() ** 2))
        yield Transfer(
            _time(minute), *sides[0], *sides[1], format_hellers(hellers),
            _drawn(random, _CURRENCIES), _drawn(random, _FORMATS),
        )  # fmt: skip


def _side(random: Random, accounts: int) -> tuple[str, str]:
    """Draw a bank and an account: a tenth of the accounts has a good half of the transfers."""
    number = int(random.random() ** 3 * accounts)
    return f"{number % 97:05d}", f"8{number:07X}0"


def _drawn(random: Random, texts: Sequence[str]) -> str:
    return texts[int(random.random() * len(texts))]


def _time(minute: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:00Z")


def balances(lines: Sequence[Transfer]) -> dict[bytes, bytes]:
    """Return the balance of each account when all transfers are settled."""
    sums: Counter[str] = Counter()
    for line in lines:
        hellers = int(line.amount.replace(".", ""))
        sums[line.from_account] -= hellers
        sums[line.to_account] += hellers
    return {account.encode(): format_hellers(hellers).encode() for account, hellers in sums.items()}


class Shape(NamedTuple):
    """A form of CSV: the name of its file, delimiter, encoding, line end, and whether every value is quoted."""

    file: str
    delimiter: str
    encoding: str
    line_end: str
    quotes_all: bool


SHAPES = (
    Shape("comma.csv", ",", "utf-8", "\n", False),
    Shape("semicolon.csv", ";", "utf-8", "\r\n", False),
    Shape("latin-1.csv", ",", "iso-8859-1", "\n", False),
    Shape("line-breaks.csv", ",", "utf-8", "\n", True),
)


def prepare(lines: list[Transfer]) -> list[list[Transfer]]:
    """Share the transfers out to the shapes, in order, with the texts that each can write.

    Only the last shape has line breaks in its values, and Latin-1 has no letter č.
    """
    share = -(-len(lines) // len(SHAPES))
    parts = []
    for number, shape in enumerate(SHAPES):
        part = lines[number * share : (number + 1) * share]
        if shape.encoding != "utf-8":
            part = [line._replace(currency=line.currency.replace("č", "c")) for line in part]
        if shape.quotes_all:
            part = [line._replace(format=line.format or "other") for line in part]
        else:
            part = [line._replace(format=" ".join(line.format.split())) for line in part]
        parts.append(part)
    return parts


def write_files(parts: Sequence[Sequence[Transfer]], directory: Path) -> None:
    """Write a file of each shape."""
    for shape, part in zip(SHAPES, parts, strict=True):
        with open(directory / shape.file, "w", encoding=shape.encoding, newline="") as file:
            writer = csv.writer(
                file,
                delimiter=shape.delimiter,
                lineterminator=shape.line_end,
                quoting=csv.QUOTE_ALL if shape.quotes_all else csv.QUOTE_MINIMAL,
            )
            writer.writerow(Transfer._fields)
            writer.writerows(part)
