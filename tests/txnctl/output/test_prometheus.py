"""The text format of Prometheus: blocks of HELP, TYPE and samples, with everything escaped."""

from __future__ import annotations

from txnctl.output.prometheus import Metric


def test_a_metric_is_a_block() -> None:
    """Integers as they are, other numbers with three digits."""
    metric = Metric(
        "txnctl_lag", "Messages.", [({"topic": "a", "subscription": "s"}, 3), ({"topic": "b"}, 0.5)]
    )
    assert list(metric.lines()) == [
        "# HELP txnctl_lag Messages.",
        "# TYPE txnctl_lag gauge",
        'txnctl_lag{topic="a",subscription="s"} 3',
        'txnctl_lag{topic="b"} 0.500',
    ]


def test_a_sample_without_labels_has_no_braces() -> None:
    """As the format has it."""
    assert list(Metric("up", "Up.", [({}, 1)]).lines())[-1] == "up 1"


def test_unknown_values_are_left_out() -> None:
    """And with them the whole block, where nothing is known."""
    assert list(Metric("m", "h", [({"a": "x"}, None), ({"a": "y"}, 0)]).lines())[2:] == ['m{a="y"} 0']
    assert list(Metric("m", "h", [({}, None)]).lines()) == []


def test_labels_and_help_cannot_break_out() -> None:
    """Quotes end a label, but not a help text."""
    lines = list(Metric("m", 'a\\b\n"c"', [({"l": 'x\\y\n"z"'}, 1)]).lines())
    assert lines[0] == '# HELP m a\\\\b\\n"c"'
    assert lines[2] == 'm{l="x\\\\y\\n\\"z\\""} 1'
