"""The bank: exact money, histories from a seed, and files of which every line is checked."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from storage.errors import BadLine, InvalidValue
from txnctl.demo.csv_file import LINE_BYTES_MAX, read_bank_csv
from txnctl.demo.generator import generate
from txnctl.demo.request import is_settlement, read_request, requests_of, settlement_key
from txnctl.demo.transaction import (
    CARD,
    CASH_IN,
    CASH_OUT,
    COLLECTION,
    COLUMNS,
    INTEREST,
    REMITTANCE,
    BankTransaction,
)
from txnctl.pipelines.hellers import format_hellers, parse_hellers

PINNED_LINES, PINNED_DIGEST = 21_079, "7cca8c25a7ea36a2"
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


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[[str | bytes], str]:
    """A file with the given content."""

    def write(content: str | bytes) -> str:
        path = tmp_path / "bank.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


# --- money ------------------------------------------------------------------------------------------------


@given(st.integers(min_value=-(10**17) + 1, max_value=10**17 - 1))
def test_money_survives_being_written_and_read(hellers: int) -> None:
    """Every amount comes back from its text exactly."""
    assert parse_hellers(format_hellers(hellers)) == hellers


@pytest.mark.parametrize(
    ("text", "hellers"), [("0", 0), ("-0.05", -5), ("12.3", 1230), ("-2692.00", -269200), ("007.10", 710)]
)
def test_money_is_read_in_every_way_it_is_written(text: str, hellers: int) -> None:
    """Decimals may be fewer than two; the sign counts below one crown too."""
    assert parse_hellers(text) == hellers


@pytest.mark.parametrize(
    "text", ["", "-", "1.", ".5", "1.234", "1e5", "+1", " 1", "1,000.00", "NaN", "٣.00", "1\n", "1" * 16]
)
def test_what_is_not_money_is_refused(text: str) -> None:
    """Nothing is rounded, guessed or trimmed."""
    with pytest.raises(ValueError, match="not an amount"):
        parse_hellers(text)


def test_money_for_people_has_its_thousands_apart() -> None:
    """The sign stands before the first group."""
    assert format_hellers(-123456789, grouped=True) == "-1,234,567.89"
    assert format_hellers(-5) == "-0.05"


# --- the generator ----------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_lines_everywhere() -> None:
    """The lines of the default seed are pinned: another Python, another machine, the same bank."""
    digest = hashlib.sha256(as_csv(HISTORY).encode()).hexdigest()
    assert (len(HISTORY), digest[:16]) == (PINNED_LINES, PINNED_DIGEST)


def test_another_seed_gives_other_lines() -> None:
    """The seed matters."""
    assert list(generate(3, 1)) != list(generate(3, 2))


def test_the_number_of_accounts_changes_no_history() -> None:
    """An account does the same in a small bank and in a large one."""

    def first_two(accounts: int) -> list[tuple[str, int, int]]:
        lines = [line for line in generate(accounts, 7) if line.account_id <= 14]
        return [(line.date, line.account_id, line.delta) for line in lines]

    assert first_two(2) == first_two(9)


def test_lines_come_as_they_are_made() -> None:
    """The first lines of a million accounts do not wait for the last; nor do those of few take long."""
    assert len(list(islice(generate(2_000), 100))) == 100


@pytest.mark.parametrize(("accounts", "seed"), [(1, 0), (2, 5), (40, 9), (160, 298)])
def test_every_account_is_whole(accounts: int, seed: int) -> None:
    """From 0, in order, the running sum of `delta` is `balance` on every line; dates never go back."""
    balances: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    before = ""
    ids = set()
    for line in generate(accounts, seed):
        balances[line.account_id] += line.delta
        seen[line.account_id] += 1
        assert line.balance == balances[line.account_id]
        assert line.acct_seq == seen[line.account_id]
        assert abs(line.delta) == line.amount > 0
        assert (line.delta > 0) == (line.type == "PRIJEM")
        assert line.date >= before
        before = line.date
        ids.add(line.trans_id)
    assert len(seen) == accounts
    assert len(ids) == sum(seen.values())


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


def test_the_bank_lives_for_years_and_some_accounts_are_overdrawn() -> None:
    """There are negative balances, few of them, and three and a half years."""
    assert 10 < sum(line.balance < 0 for line in HISTORY) < len(HISTORY) * 0.02
    assert HISTORY[0].date[:4] == "1995"
    assert HISTORY[-1].date[:4] == "1998"
    assert 80 < len(HISTORY) / len({line.account_id for line in HISTORY}) < 180


def test_a_bank_without_accounts_is_refused() -> None:
    """There is nothing to generate."""
    with pytest.raises(ValueError, match="at least one account"):
        list(generate(0))


# --- files ------------------------------------------------------------------------------------------------


def test_a_file_gives_back_what_was_generated(file_of: Callable[[str | bytes], str]) -> None:
    """Written as CSV and read again, every field of every line is the same; gzip is recognised by content."""
    lines = list(generate(12, 3))
    text = as_csv(lines)
    assert list(read_bank_csv(file_of(text))) == lines
    assert list(read_bank_csv(file_of(gzip.compress(text.encode())))) == lines


def test_a_file_may_have_more_columns_in_any_order(file_of: Callable[[str | bytes], str]) -> None:
    """Columns are found by name; a byte order mark, CRLF and empty lines at the end do not matter."""
    lines = list(generate(2, 3))
    rows = list(csv.reader(io.StringIO(as_csv(lines))))
    turned = "\r\n".join(",".join(["x", *reversed(row)]) for row in rows)
    assert list(read_bank_csv(file_of("\ufeff" + turned + "\r\n\r\n"))) == lines


GOOD = "7,3,1995-01-02,PRIJEM,VKLAD,500.00,500.00,,,,1,500.00,B"
NEXT = "8,3,1995-01-03,VYDAJ,PREVOD NA UCET,20.00,480.00,SIPO,AB,99,2,-20.00,B"
HEADER = ",".join(COLUMNS)


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


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    """Missing or a directory: bad input that names the path."""
    for path in (tmp_path / "missing.csv", tmp_path):
        with pytest.raises(InvalidValue, match=f"cannot read '{path}'"):
            list(read_bank_csv(str(path)))


# --- requests ---------------------------------------------------------------------------------------------


def test_requests_carry_the_whole_change() -> None:
    """Read back, the requests of all lines sum up to the balances, and each has a name of its own."""
    names = Counter[tuple[str, int]]()
    totals = Counter[str]()
    for line in HISTORY:
        for request in requests_of(line):
            key, trans_id, delta = read_request(request.key.encode(), request.value)
            names[key, trans_id] += 1
            totals[key] += delta
    assert max(names.values()) == 1
    balances = {str(line.account_id): line.balance for line in HISTORY}
    assert {key: total for key, total in totals.items() if not is_settlement(key)} == balances
    remitted = sum(-line.delta for line in HISTORY if line.is_remittance)
    assert sum(total for key, total in totals.items() if is_settlement(key)) == remitted


def test_a_remittance_is_two_requests_that_cancel_out() -> None:
    """The account minus, the settlement account of the partner bank plus, at the same date."""
    line = next(line for line in HISTORY if line.is_remittance)
    account, partner = requests_of(line)
    assert (account.key, partner.key) == (str(line.account_id), settlement_key(line.bank))
    assert account.delta + partner.delta == 0
    assert account.event_time == partner.event_time


def test_a_request_is_readable_and_dated() -> None:
    """The value is one line of JSON in plain words; the event time is the date in milliseconds."""
    line = BankTransaction(
        5, 17, "1995-03-01", "VYDAJ", "PREVOD NA UCET", 269200, 1000, "SIPO", "IJ", "519", 4, -269200, "B"
    )
    account, partner = requests_of(line)
    assert account.value == (
        b'{"id":5,"date":"1995-03-01","what":"remittance","delta":"-2692.00","to":"IJ 519","symbol":"SIPO"}'
    )
    assert partner.value == (
        b'{"id":5,"date":"1995-03-01","what":"remittance","delta":"2692.00","from":"17","symbol":"SIPO"}'
    )
    assert account.event_time == 794_016_000_000


@pytest.mark.parametrize(
    "value", [None, b"", b"{}", b"[]", b'{"id":1,"delta":"x"}', b"\xff", b'{"id":null,"delta":"1"}']
)
def test_what_is_no_request_is_told_apart(value: bytes | None) -> None:
    """A message that somebody else sent is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - what kind it is does not matter
        read_request(b"17", value)
