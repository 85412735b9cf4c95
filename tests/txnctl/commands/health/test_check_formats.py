"""Check formats: `txnctl/commands/health/check_formats.py`."""

from __future__ import annotations

from tests.txnctl.commands.health.check_steps import (
    NO_ENDS,
    blocked_topic,
    overview_of,
    performance,
)
from txnctl.commands.health.check_formats import nagios
from txnctl.commands.health.check_measures import judge


def test_performance_data_has_plain_numbers() -> None:
    """Of any size, in seconds to the millisecond; the text before them has no bar."""
    for age_ms, expected in ((10, "0.01"), (60_000, "60"), (1_036_800_001, "1036800.001")):
        topic = blocked_topic("a|b", 1, age_ms, None)
        first, *others = nagios(judge(overview_of(topics=[topic]), NO_ENDS, {}, {"blocked-age": 0}))
        assert performance(first)["blocked_age"][0] == expected
        assert "(a/b behind 0:1)" in others[0]
