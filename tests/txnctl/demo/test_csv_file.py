"""Csv file: `txnctl/demo/csv_file.py`."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.errors import BadLine, InvalidValue
from tests.txnctl.bank_steps import as_csv
from txnctl.demo.csv_file import LINE_BYTES_MAX, read_bank_csv
from txnctl.demo.generator import generate
from txnctl.demo.transaction import (
    COLUMNS,
)

GOOD = "7,3,1995-01-02,PRIJEM,VKLAD,500.00,500.00,,,,1,500.00,B"


NEXT = "8,3,1995-01-03,VYDAJ,PREVOD NA UCET,20.00,480.00,SIPO,AB,99,2,-20.00,B"


HEADER = ",".join(COLUMNS)


# --- files ------------------------------------------------------------------------------------------------


def test_a_file_gives_back_what_was_generated(file_of: Callable[[str | bytes], str]) -> None:
    """Written as CSV and read again, every field of every line is the same; gzip is recognised by content."""
    lines = list(generate(12, 3))
    text = as_csv(lines)
    assert list(read_bank_csv(file_of(text))) == lines
    assert list(read_bank_csv(file_of(gzip.compress(text.encode())))) == lines


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (NEXT.replace("480.00", "481.00"), "account 3 had 500.00 and changes by -20.00, but balance is 481.00"),
        (NEXT.replace("8,3", "7,3"), "trans_id 7 stands on an earlier line too"),
        (NEXT.replace("8,3", "x,3"), "trans_id 'x' is not a whole number"),
        (NEXT.replace("8,3", "8,-3"), "account_id '-3' is not a whole number"),
        (NEXT.replace("8,3", "8," + "9" * 400), "account_id '9999"),
        (NEXT.replace("-20.00", "-20.001"), "delta '-20.001' is not an amount"),
        (NEXT.replace(",480.00", ","), "balance '' is not an amount"),
        (NEXT.replace("-20.00", "20.00"), "delta 20.00 has the wrong sign for type VYDAJ"),
        (NEXT.replace("1995-01-03", "1995-02-30"), "date '1995-02-30' is not YYYY-MM-DD"),
        (NEXT.replace("1995-01-03", "19950103"), "date '19950103' is not YYYY-MM-DD"),
        (NEXT.replace("1995-01-03", "1969-12-31"), "from 1970 on"),
        (NEXT.replace("VYDAJ", "OTHER"), "type 'OTHER' is none of PRIJEM, VYBER, VYDAJ"),
        (NEXT.replace("PREVOD NA UCET", "DAR"), "operation 'DAR' is none of"),
        (NEXT.replace(",AB,", ",,"), "a remittance that names no bank"),
        ("8,3,1995-01-03", "3 fields, the header names 13"),
        ('"8,3', "unexpected end of data"),
        ('8,"3"x,1', "',' expected after '\"'"),
        ("8" * LINE_BYTES_MAX, "it is longer than 10,000 bytes"),
        (b"8,3,\xff\xfe", "it is not UTF-8 text"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(line: str | bytes, what: str, file_of: Callable[[str | bytes], str]) -> None:
    """The error says which line and what is wrong with it; the lines before it were good."""
    raw = line if isinstance(line, bytes) else line.encode()
    path = file_of(f"{HEADER}\n{GOOD}\n".encode() + raw + b"\n")
    lines = read_bank_csv(path)
    assert next(lines).trans_id == 7
    with pytest.raises(BadLine) as caught:
        list(lines)
    assert caught.value.details["lineNumber"] == 3
    assert "line 3: " in caught.value.message
    assert what in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("content", ["", "\n", "a,b,c\n1,2,3\n", "PK\x03\x04", HEADER.replace("delta", "d")])
def test_a_file_of_something_else_is_refused(content: str, file_of: Callable[[str | bytes], str]) -> None:
    """Line 1 must name the columns; the hint lists them."""
    with pytest.raises(BadLine, match=r"line 1: no column .*delta") as caught:
        list(read_bank_csv(file_of(content)))
    assert caught.value.hint is not None
    assert HEADER in caught.value.hint


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    """Missing or a directory: bad input that names the path."""
    for path in (tmp_path / "missing.csv", tmp_path):
        with pytest.raises(InvalidValue, match=f"cannot read {path}"):
            list(read_bank_csv(str(path)))
