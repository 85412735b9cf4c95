"""Points in time of options: `txnctl/cli/time_values.py`."""

from __future__ import annotations

from typing import Any

import pytest

from storage.errors import InvalidValue
from txnctl.cli.at_time import AtTime
from txnctl.cli.of_now import known
from txnctl.cli.time_values import FUTURE_TIME, MOMENT, POSITION_TEXT, TIME
from txnctl.output.timestamp import NOW, milliseconds

HOUR_MS = 3_600_000


@pytest.mark.parametrize("text", ["2h", "@2h"])
def test_an_age_is_that_long_ago(text: str) -> None:
    """Of messages in milliseconds, of tables up to the end of the millisecond, for Spark as a time."""
    now_ms = 1_700_000_000_000
    assert known(TIME.read(text), now_ms) == now_ms - 2 * HOUR_MS
    assert known(MOMENT.read(text), now_ms) == (now_ms - 2 * HOUR_MS) * 1_000_000 + 999_999
    assert milliseconds(known(POSITION_TEXT.read("@2h"), now_ms)[1:]) == now_ms - 2 * HOUR_MS


@pytest.mark.parametrize("kind", [TIME, FUTURE_TIME])
@pytest.mark.parametrize("text", ["1970-01-01T00:00:00.500Z", "500", "@500", "@1970-01-01T01:00:00.5+01:00"])
def test_every_form_of_a_time_is_milliseconds(kind: Any, text: str) -> None:
    """With an `@` as in positions, and without."""
    assert kind.read(text) == 500


def test_a_moment_of_tables_is_now_or_a_version_too() -> None:
    """Versions have more digits than milliseconds."""
    assert MOMENT.read("now") == NOW
    assert MOMENT.read("1700000000000000000") == 1_700_000_000_000_000_000
    assert MOMENT.read("500") == 500_999_999


@pytest.mark.parametrize("kind", [TIME, FUTURE_TIME, MOMENT])
@pytest.mark.parametrize("text", ["", "@", "@@2h", "yesterday", "2024-05-01T10:00:00", "-5"])
def test_what_is_no_time_is_refused_with_the_forms(kind: Any, text: str) -> None:
    """A time without a zone is another time elsewhere."""
    with pytest.raises(InvalidValue) as caught:
        kind.convert(text, None, None)
    assert "2024-05-01T10:00:00Z" in str(caught.value.hint)


@pytest.mark.parametrize("kind", [TIME, FUTURE_TIME, MOMENT])
@pytest.mark.parametrize("text", ["1714557600", "@1714557600", "20240501"])
def test_seconds_and_dates_without_hyphens_are_no_milliseconds(kind: Any, text: str) -> None:
    """Taken as such they are in 1970: a seek would go to the beginning of the topic."""
    with pytest.raises(InvalidValue, match="is a time in 1970"):
        kind.convert(text, None, None)
    with pytest.raises(InvalidValue, match="is a time in 1970"):
        AtTime.parse(text)


def test_a_delivery_in_the_past_is_not_meant() -> None:
    """`--deliver-at 2h` is meant as in two hours, which --deliver-after takes."""
    with pytest.raises(InvalidValue, match="is an age") as caught:
        FUTURE_TIME.convert("2h", None, None)
    assert "--deliver-after" in str(caught.value.hint)


def test_a_position_for_spark_stays_text() -> None:
    """Only times are resolved: Spark's options know no ages."""
    assert [POSITION_TEXT.read(text) for text in ("earliest", "12:4471", "@500")] == [
        "earliest",
        "12:4471",
        "@1970-01-01T00:00:00.500Z",
    ]
