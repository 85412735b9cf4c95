"""Steps that the tests of bank share."""

from __future__ import annotations

import csv
import io

from txnctl.demo.generator import generate
from txnctl.demo.transaction import (
    COLUMNS,
    BankTransaction,
)
from txnctl.pipelines.hellers import format_hellers

MONEY = ("amount", "balance", "delta")


HISTORY = list(generate())


def as_csv(lines: list[BankTransaction]) -> str:
    """The lines as the text of a file, with the columns of the real data."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in lines:
        fields = {name: getattr(line, name) for name in COLUMNS}
        writer.writerow(format_hellers(value) if name in MONEY else value for name, value in fields.items())
    return text.getvalue()
