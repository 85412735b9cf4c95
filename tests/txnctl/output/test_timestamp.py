"""Timestamp: `txnctl/output/timestamp.py`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, strategies as st

from storage.errors import InvalidValue
from storage.values.timestamps import both, rfc3339
from txnctl.output.timestamp import clock_time, milliseconds


class TestTimestamps:
    """RFC 3339 in UTC, and back."""

    @given(st.integers(0, 253_402_300_799_999))
    @example(0)
    @example(253_402_300_799_999)
    def test_every_instant_comes_back(self, time_ms: int) -> None:
        """To the millisecond."""
        text = rfc3339(time_ms)
        assert text is not None
        assert datetime.fromisoformat(text).astimezone(UTC).year >= 1970
        assert milliseconds(text) == time_ms
        assert milliseconds(str(time_ms), has_unit=True) == time_ms

    @pytest.mark.parametrize(
        ("number", "year"),
        [
            (10_000_000, 1970), (20240501, 1970), (99_999_999, 1970), (100_000_000, 1970), (999_999_999, 1970),
            (1_000_000_000, 1970), (9_999_999_999, 1970), (202405011200, 1976), (20240501120000, 2611),
        ],
    )  # fmt: skip
    def test_a_number_that_is_mostly_meant_otherwise_is_refused(self, number: int, year: int) -> None:
        """8, 12 and 14 digits are a date, 9 and 10 digits seconds; the numbers beside are milliseconds."""
        with pytest.raises(InvalidValue, match=f"{number} is a time in {year}, in milliseconds"):
            milliseconds(str(number))
        assert milliseconds(str(number), has_unit=True) == number
        for beside in (9_999_999, 10_000_000_000, 725_846_400_000, 1_714_557_600_000):
            assert milliseconds(str(beside)) == beside

    @pytest.mark.parametrize("text", ["1950-01-01", "1969-12-31T23:59:59.999Z", "1970-01-01T00:30:00+01:00"])
    def test_a_time_before_1970_is_refused_as_such(self, text: str) -> None:
        """It is a time, which is not kept."""
        with pytest.raises(InvalidValue, match=re.escape(f"{text} is a time before 1970")) as refused:
            milliseconds(text)
        assert refused.value.hint == "Times before 1970 are not kept."

    def test_forms(self) -> None:
        """As the contract writes them."""
        assert rfc3339(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
        assert clock_time(1_700_000_000_123) == "22:13:20Z"
        assert both("begin", 5) == {"beginAt": "1970-01-01T00:00:00.005Z", "beginMs": 5}
        assert both("end", None) == {"endAt": None, "endMs": None}
        assert rfc3339(-1) is None
        assert rfc3339(1 << 62) is None
