"""Values of options as text."""

from __future__ import annotations

import pytest

from storage.errors import InvalidValue
from txnctl.output.timestamp import NOW
from txnctl.spark import option_values


def test_values_are_parsed() -> None:
    """Flags in any case, counts, sizes with a unit, versions under three names."""
    given = {"flag": "TRUE", "count": "12", "size": "64K", "asOf": "now"}
    assert option_values.flag(given, "flag", default=False)
    assert option_values.flag(given, "none", default=True)
    assert (option_values.count(given, "count"), option_values.count(given, "none")) == (12, None)
    assert (option_values.size(given, "size"), option_values.size(given, "none")) == (65536, None)
    assert option_values.version(given) == NOW
    assert option_values.version({}) is None


@pytest.mark.parametrize("text", ["", "1.5", "-1", "0", "yes", "64q"])
def test_further_text_is_refused(text: str) -> None:
    """As an error that names the option."""
    for parse in (option_values.count, option_values.size):
        with pytest.raises(InvalidValue, match="here is a"):
            parse({"here": text}, "here")
    with pytest.raises(InvalidValue, match="here is true or false"):
        option_values.flag({"here": text}, "here", default=True)
    with pytest.raises(InvalidValue, match="versionAsOf"):
        option_values.version({"versionAsOf": text})
