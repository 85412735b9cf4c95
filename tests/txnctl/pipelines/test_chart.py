"""The line chart: valid SVG, whose points are where the values say."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given, strategies as st

from txnctl.pipelines.chart import Series, line_chart, round_ticks, spread

SVG = "{http://www.w3.org/2000/svg}"


def test_a_chart_is_valid_and_shows_what_it_is_given() -> None:
    """Names are escaped; a rising series rises; a place without a value has no point."""
    text = line_chart(
        "a < b", ["d1", "d2", "d3"], [Series("x & y", [0, 50, 100]), Series("z", [100, None, 0])]
    )
    root = ElementTree.fromstring(text)
    rising, falling = (
        [tuple(map(float, point.split(","))) for point in (line.get("points") or "").split()]
        for line in root.iter(f"{SVG}polyline")
    )
    assert [y for _, y in rising] == sorted((y for _, y in rising), reverse=True)
    assert len(falling) == 2
    assert falling[0][1] == rising[-1][1]
    words = {element.text for element in root.iter(f"{SVG}text")}
    assert {"a < b", "x & y", "z", "d1", "d3"} <= words


def test_an_empty_chart_is_valid() -> None:
    """There may be no day at all."""
    assert ElementTree.fromstring(line_chart("empty", [], [Series("x", [])])).tag == f"{SVG}svg"


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_ticks_are_round_even_and_enclose_the_values(one: float, other: float) -> None:
    """A handful, from at or below the lowest to at or above the highest."""
    low, high = min(one, other), max(one, other)
    ticks = round_ticks(low, high)
    assert ticks[0] <= low <= high <= ticks[-1] + abs(ticks[-1]) * 1e-9
    assert 2 <= len(ticks) <= 8


@given(st.integers(0, 500), st.integers(2, 10))
def test_labels_are_spread_over_the_whole_axis(count: int, wanted: int) -> None:
    """The first and the last place are among them."""
    places = spread(count, wanted)
    assert len(places) == min(count, wanted)
    assert count == 0 or {0, count - 1} <= set(places)
