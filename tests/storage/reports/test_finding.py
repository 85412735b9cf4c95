"""Words that findings share."""

from __future__ import annotations

import pytest

from storage.reports.finding import SHOWN, several, some


@pytest.mark.parametrize(("number", "text"), [(0, "0 messages"), (1, "1 message"), (5688, "5,688 messages")])
def test_numbers_have_their_nouns(number: int, text: str) -> None:
    """One is one."""
    assert several(number, "message") == text


def test_a_few_are_named_and_the_rest_counted() -> None:
    """At the bound all are named."""
    names = [f"t{number}" for number in range(SHOWN + 2)]
    assert some([]) == ""
    assert some(names[:SHOWN]) == "t0, t1, t2, t3, t4"
    assert some(names) == "t0, t1, t2, t3, t4 and 2 more"
