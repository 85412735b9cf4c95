"""Transaction: `txnctl/demo/transaction.py`."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections import Counter
from collections.abc import Callable

import pytest

from storage.errors import BadLine
from tests.txnctl.bank_steps import HISTORY, as_csv
from txnctl.demo.csv_file import read_bank_csv
from txnctl.demo.generator import generate
from txnctl.demo.request import requests_of
from txnctl.demo.transaction import (
    CARD,
    CASH_IN,
    CASH_OUT,
    COLLECTION,
    INTEREST,
    REMITTANCE,
    BankTransaction,
)

PINNED_LINES, PINNED_DIGEST = 21_079, "7cca8c25a7ea36a2"


# --- the generator ----------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_lines_everywhere() -> None:
    """The lines of the default seed are pinned: another Python, another machine, the same bank."""
    digest = hashlib.sha256(as_csv(HISTORY).encode()).hexdigest()
    assert (len(HISTORY), digest[:16]) == (PINNED_LINES, PINNED_DIGEST)


def test_the_bank_looks_like_the_real_one() -> None:
    """The shares of the operations are within a few points of those of the Czech data."""
    operations = Counter(line.operation for line in HISTORY)
    share = {name: operations[name] / len(HISTORY) for name in operations}
    real = {CASH_OUT: 0.46, REMITTANCE: 0.17, CASH_IN: 0.17, INTEREST: 0.16, COLLECTION: 0.04, CARD: 0.003}
    assert share.keys() == real.keys()
    assert all(abs(share[name] - real[name]) < 0.05 for name in real)
    assert {line.k_symbol for line in HISTORY} >= {
        "UROK",
        "SLUZBY",
        "SIPO",
        "POJISTNE",
        "SANKC. UROK",
        " ",
        "",
    }
    assert {line.src for line in HISTORY} == {"G"}


def test_a_file_may_have_more_columns_in_any_order(file_of: Callable[[str | bytes], str]) -> None:
    """Columns are found by name; a byte order mark, CRLF and empty lines at the end do not matter."""
    lines = list(generate(2, 3))
    rows = list(csv.reader(io.StringIO(as_csv(lines))))
    turned = "\r\n".join(",".join(["x", *reversed(row)]) for row in rows)
    assert list(read_bank_csv(file_of("\ufeff" + turned + "\r\n\r\n"))) == lines


@pytest.mark.parametrize("damage", ["cut", "flipped", "header"])
def test_a_damaged_gzip_file_is_refused(damage: str, file_of: Callable[[str | bytes], str]) -> None:
    """A truncated or altered compressed file is bad input, never a traceback."""
    packed = bytearray(gzip.compress(as_csv(list(generate(12, 3))).encode()))
    if damage == "cut":
        del packed[len(packed) // 2 :]
    elif damage == "flipped":
        packed[len(packed) // 2] ^= 0xFF
    else:
        packed[2] = 0x77
    with pytest.raises(BadLine):
        list(read_bank_csv(file_of(bytes(packed))))


def test_a_request_is_readable_and_dated() -> None:
    """The value is one line of JSON in plain words; the event time is the date in milliseconds."""
    line = BankTransaction(
        5, 17, "1995-03-01", "VYDAJ", "PREVOD NA UCET", 269200, 1000, "SIPO", "IJ", "519", 4, -269200, "B"
    )
    account, partner = requests_of(line)
    assert account.value == (
        b'{"id":5,"date":"1995-03-01","what":"remittance","delta":"-2692.00","to":"IJ 519","symbol":"SIPO",'
        b'"legs":[{"account":"17","delta":"-2692.00"},{"account":"bank:IJ","delta":"2692.00"}]}'
    )
    assert partner.value == (
        b'{"id":5,"date":"1995-03-01","what":"remittance","delta":"2692.00","from":"17","symbol":"SIPO",'
        b'"legs":[{"account":"bank:IJ","delta":"0.00"}]}'
    )
    assert account.event_time == 794_016_000_000
