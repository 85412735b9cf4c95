"""Each kind of value has one grammar; what does not fit is bad input that says what was expected."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click
import pytest
from hypothesis import given, strategies as st

from storage import errors
from storage.values.position import EARLIEST, LATEST, MessageId, Position
from storage.values.txn_id import TxnID
from txnctl.cli import retention_values, time_values, value_types
from txnctl.cli.at_time import AtTime


def refused(kind: value_types.Grammar, text: str) -> errors.BadInput:
    """The error that this text gives, typed after `--value`."""
    option = click.Option(["--value"], type=kind)
    with pytest.raises(errors.BadInput) as caught:
        kind.convert(text, option, click.Context(click.Command("c")))
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith("--value: ")
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30.0), ("15m", 900.0), ("2h", 7200.0), ("1d", 86400.0), ("0s", 0.0)],
)
def test_durations(text: str, seconds: float) -> None:
    """A whole number and a unit; in seconds or in milliseconds."""
    assert value_types.DURATION.convert(text, None, None) == seconds
    milliseconds = value_types.DURATION_MS.convert(text, None, None)
    assert (milliseconds, type(milliseconds)) == (int(seconds * 1000), int)


@pytest.mark.parametrize(
    "text", ["", "5", "s", "1.5s", "-1s", "1 s", "1h30m", "1S", "1ss", "1dms", "٣s", "99999d", "9" * 40 + "s"]
)
def test_what_is_no_duration(text: str) -> None:
    """No number without a unit: 5 of what?"""
    assert "500ms, 30s, 15m, 2h or 1d" in (refused(value_types.DURATION, text).hint or "")


@pytest.mark.parametrize(
    ("kind", "text", "longest"),
    [
        (value_types.DURATION, "100000d", "is longer than 36500d, the longest duration"),
        (value_types.DURATION_MS, "99999999h", "is longer than 36500d, the longest duration"),
        (time_values.TIME, "100000d", "is longer than 36500d, the longest duration"),
        (retention_values.RETENTION_TIME, "100000d", "is longer than 36500d, the longest duration"),
        (value_types.SIZE, "2000000T", "is larger than 1048576T, the largest size"),
        (retention_values.RETENTION_SIZE, "2000000tib", "is larger than 1048576T, the largest size"),
    ],
)
def test_a_number_that_is_too_large_names_the_largest(kind: Any, text: str, longest: str) -> None:
    """It is a duration or a size, so that 'not a duration' would be wrong."""
    assert refused(kind, text).message == f"--value: {text!r} {longest}"


@given(st.integers(0, 36_500 * 86_400_000))
def test_every_duration_in_milliseconds_is_exact(milliseconds: int) -> None:
    """No rounding on the way."""
    assert value_types.DURATION_MS.read(f"{milliseconds}ms") == milliseconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("4096", 4096), ("7B", 7), ("64K", 65536), ("64k", 65536), ("5M", 5 << 20), ("5MiB", 5 << 20),
     ("5mb", 5 << 20), ("1G", 1 << 30), ("2T", 2 << 40)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    """Bytes, or with a unit of 1,024."""
    assert value_types.SIZE.convert(text, None, None) == size


@pytest.mark.parametrize(
    "text", ["", "M", "1.5M", "-1", "1 M", "1MM", "1BK", "1iB", "10P", "9" * 19, "99999999T"]
)
def test_what_is_no_size(text: str) -> None:
    """Bad input, naming the option."""
    refused(value_types.SIZE, text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("12:4471", Position(12, 4471)),
        ("1:0:3", MessageId(1, 0, 3)),
    ],
)
def test_positions(text: str, position: object) -> None:
    """The engine's own parser reads them."""
    assert value_types.POSITION.convert(text, None, None) == position
    assert value_types.POSITION_OR_TIME.convert(text, None, None) == position


@pytest.mark.parametrize(
    "text", ["", "12", "12:", "a:b", "1:2:3:4", "-1:2", "1:-1", "EARLIEST", "@2024-05-01"]
)
def test_what_is_no_position(text: str) -> None:
    """The code is the engine's."""
    assert refused(value_types.POSITION, text).code == "invalid-position"


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("@1714557600000", 1714557600000),
        ("@2024-05-01T10:00:00Z", 1714557600000),
        ("@2024-05-01T12:00:00.25+02:00", 1714557600250),
        ("@2024-05-01", 1714521600000),
    ],
)
def test_times_as_positions(text: str, time_ms: int) -> None:
    """RFC 3339 with a zone, a date, or milliseconds."""
    assert value_types.POSITION_OR_TIME.convert(text, None, None) == AtTime(time_ms)
    assert time_values.TIME.convert(text[1:], None, None) == time_ms


@pytest.mark.parametrize("text", ["@", "@now", "@2024-05-01T10:00:00", "@-1", "@99999999999999999"])
def test_what_is_no_time(text: str) -> None:
    """A time of day without a zone could be any of forty instants."""
    assert refused(value_types.POSITION_OR_TIME, text).code == "invalid-position"


def test_a_time_before_1970_is_a_time_that_is_not_kept() -> None:
    """Said as at every door that takes a time."""
    assert "before 1970" in str(refused(value_types.POSITION_OR_TIME, "@1960-01-01"))


def test_ranges() -> None:
    """A..B with either side missing, one position, the last N, from a time on."""

    def read(text: str) -> tuple[Any, Any, int | None]:
        found = value_types.RANGE.convert(text, None, None)
        return found.first, found.last, found.newest

    assert read("1:0..2:5") == (Position(1, 0), Position(2, 5), None)
    assert read("1:0..") == (Position(1, 0), LATEST, None)
    assert read("..2:5") == (EARLIEST, Position(2, 5), None)
    assert read("..") == (EARLIEST, LATEST, None)
    assert read("1:0:3") == (MessageId(1, 0, 3), MessageId(1, 0, 3), None)
    assert read("-20") == (EARLIEST, LATEST, 20)
    assert read("@5") == (AtTime(5), LATEST, None)
    assert read("@5..@9") == (AtTime(5), AtTime(9), None)


@pytest.mark.parametrize("text", ["", "-", "-0", "-x", "1..2", "1:0...2:0", "1:0..2:0..3:0"])
def test_what_is_no_range(text: str) -> None:
    """Bad input, naming the option."""
    refused(value_types.RANGE, text)


@pytest.mark.parametrize("text", ["0:42", "(0,42)", "42"])
def test_transaction_ids(text: str) -> None:
    """Three ways to write one."""
    assert value_types.TXN_ID.convert(text, None, None) == TxnID(42)


@pytest.mark.parametrize("text", ["", "0", "1:42", "x", "0:-1"])
def test_what_is_no_transaction_id(text: str) -> None:
    """The code is the engine's."""
    assert refused(value_types.TXN_ID, text).code == "invalid-transaction-id"


@pytest.mark.parametrize(
    "text", ["READ_UNCOMMITTED", "read-uncommitted", "read_uncommitted", "Read-Uncommitted"]
)
def test_named_constants_in_every_spelling(text: str) -> None:
    """As Pulsar writes them, as a shell writes them."""
    kind = value_types.NamedConstant("isolation level", ("read-committed", "read-uncommitted"))
    assert kind.convert(text, None, None) == "read-uncommitted"


def test_named_constants_of_the_engine() -> None:
    """They come as members of its enumerations."""
    from storage import IsolationLevel, SubscriptionType

    assert value_types.ISOLATION_LEVEL.convert("READ_COMMITTED", None, None) is IsolationLevel.READ_COMMITTED
    assert value_types.SUBSCRIPTION_TYPE.convert("Key_Shared", None, None) is SubscriptionType.KEY_SHARED
    for kind in (value_types.ISOLATION_LEVEL, value_types.SUBSCRIPTION_TYPE):
        for name in kind.names:
            assert kind.convert(name, None, None).name == name.upper().replace("-", "_")


@pytest.mark.parametrize(
    "text", ["WaitForExclusive", "WAIT_FOR_EXCLUSIVE", "wait-for-exclusive", "waitforexclusive"]
)
def test_access_modes_in_every_spelling(text: str) -> None:
    """Pulsar's words have no hyphens, a shell's have."""
    from storage import AccessMode

    assert value_types.ACCESS_MODE.convert(text, None, None) is AccessMode.WAIT_FOR_EXCLUSIVE
    assert [
        value_types.ACCESS_MODE.convert(name, None, None).value for name in value_types.ACCESS_MODE.names
    ] == list(value_types.ACCESS_MODE.names)
    assert "Shared" in (refused(value_types.ACCESS_MODE, "alone").hint or "")
    refused(value_types.EXCLUSIVE_MODE, "Shared")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1-2",
        "0badcafe-1-2",
        "0badcafe-1-2-xyz",
        "0badcafe-0-1-0011223344556677",
        "0badcafe-1-0-0011223344556677",
        "-1-1-0011223344556677",
        "0badcafe-1-1-0011223344556677-1",
        "0badcafe-\u0661-1-0011223344556677",
        "0badcafe-1-1-00",
        "zzzzzzzz-1-1-0011223344556677",
    ],
)
def test_what_is_no_session_token(text: str) -> None:
    """Bad input, naming the command that prints one."""
    assert "producers open" in (refused(value_types.SESSION, text).hint or "")
    token = "0badcafe-1-2-0011223344556677"
    assert value_types.SESSION.convert(token, None, None) == token


def test_what_is_no_constant_lists_those_there_are() -> None:
    """The hint is the list."""
    assert "READ_COMMITTED, READ_UNCOMMITTED" in (
        refused(value_types.ISOLATION_LEVEL, "serializable").hint or ""
    )


@pytest.mark.parametrize(("text", "pair"), [("a=b", ("a", "b")), ("a=", ("a", "")), ("a=b=c", ("a", "b=c"))])
def test_pairs(text: str, pair: tuple[str, str]) -> None:
    """The first equals sign parts them."""
    assert value_types.KEY_VALUE.convert(text, None, None) == pair


@pytest.mark.parametrize("text", ["", "a", "=b"])
def test_what_is_no_pair(text: str) -> None:
    """A name is needed."""
    refused(value_types.KEY_VALUE, text)


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_bad_input(text: str) -> None:
    """Never another exception."""
    kinds = (
        value_types.DURATION,
        value_types.SIZE,
        value_types.POSITION_OR_TIME,
        value_types.RANGE,
        value_types.TXN_ID,
        value_types.KEY_VALUE,
    )
    for kind in (*kinds, time_values.TIME):
        with suppress(errors.BadInput):
            kind.convert(text, None, None)


def test_a_long_value_is_quoted_in_part() -> None:
    """An error stays one line that can be read."""
    assert len(refused(value_types.DURATION, "x" * 10_000).message) < 150


def test_a_value_that_is_one_already_stays() -> None:
    """Defaults are not parsed."""
    assert value_types.DURATION.convert(2.5, None, None) == 2.5
    assert value_types.POSITION.convert(LATEST, None, None) is LATEST


@pytest.mark.parametrize("words", [("produce", "t", "-m", "x"), ("tables", "get", "a", "k"), ("tables", "import", "a"),
                                   ("subscriptions", "ack", "t", "s", "1:0"), ("producers", "open", "t"),
                                   ("producers", "lead", "t", "--", "true")], ids=" ".join)  # fmt: skip
def test_a_variable_is_blamed_for_its_value(
    monkeypatch: pytest.MonkeyPatch, run: Any, words: tuple[str, ...]
) -> None:
    """An option that nobody typed is not at fault; a typed one counts before the variable, and is."""
    monkeypatch.setenv("TXNCTL_TXN", "abc")
    outcome = run(*words)
    assert (outcome.status, outcome.err.splitlines()[0]) == (
        2,
        "txnctl: error: TXNCTL_TXN: 'abc' is not a transaction id",
    )
    at = words.index("t") if "t" in words else words.index("a")
    outcome = run(*words[:at], "--txn", "xyz", *words[at:])
    assert outcome.err.splitlines()[0] == "txnctl: error: --txn: 'xyz' is not a transaction id"
