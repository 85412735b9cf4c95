"""The text format of Prometheus: blocks of HELP, TYPE and samples, with everything escaped."""

from __future__ import annotations

from txnctl.output.prometheus import COUNTER, Histogram, Metric


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


def test_a_counter_is_named_so() -> None:
    """In the line of the type."""
    assert list(Metric("m_total", "h", [({}, 1)], COUNTER).lines())[1] == "# TYPE m_total counter"


def test_buckets_of_a_histogram_add_up() -> None:
    """The last one, without a bound, is the count."""
    assert list(Histogram("d_seconds", "Time.", [0.5, 1.0], [2, 0, 3], 12.5).lines()) == [
        "# HELP d_seconds Time.",
        "# TYPE d_seconds histogram",
        'd_seconds_bucket{le="0.5"} 2',
        'd_seconds_bucket{le="1.0"} 2',
        'd_seconds_bucket{le="+Inf"} 5',
        "d_seconds_sum 12.500000000",
        "d_seconds_count 5",
    ]
