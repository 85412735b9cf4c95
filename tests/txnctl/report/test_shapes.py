"""Shapes and labels: where they are, before any browser has drawn them."""

from __future__ import annotations

import pytest

from txnctl.report.shapes import CELL, DrawingRow, Label, PageDrawing, Shape, cells


@pytest.mark.parametrize(("text", "width"), [("", 0), ("abc", 3), ("zoë", 3), ("漢字", 4), ("Ａ", 2)])
def test_the_width_of_a_text_is_counted_in_letters(text: str, width: int) -> None:
    """East Asian ones are wide."""
    assert cells(text) == width


def test_a_shape_fills_its_box() -> None:
    """Left, top, right, bottom."""
    assert Shape("rect", "open", 10, 20, 30, 5).box == (10, 20, 40, 25)


def test_a_label_begins_or_ends_where_it_is_put() -> None:
    """And is as wide as its letters."""
    begins, ends = Label("abcd", "k", 100, 50), Label("abcd", "k", 100, 50, ends=True)
    assert begins.width == ends.width == 4 * CELL
    assert (begins.box[0], begins.box[2]) == (100, 100 + 4 * CELL)
    assert (ends.box[0], ends.box[2]) == (100 - 4 * CELL, 100)
    assert begins.box[1] < 50 < begins.box[3]


def test_a_label_is_harmless() -> None:
    """And is measured as it is shown."""
    label = Label("a\x1b", "k", 0, 0)
    assert label.text == "a\\x1b"
    assert label.width == 5 * CELL


def test_a_drawing_has_the_parts_of_its_rows() -> None:
    """In their order."""
    drawing = PageDrawing("Title", "In words.", 800)
    for name in ("a", "b"):
        row = DrawingRow(name)
        row.labels.append(Label(name, "k", 0, 0))
        row.shapes += [Shape("rect", name, 0, 0, 1, 1), Shape("line", name, 0, 0, 1, 1)]
        drawing.rows.append(row)
    assert [label.text for label in drawing.labels()] == ["a", "b"]
    assert [(shape.form, shape.kind) for shape in drawing.shapes()] == [
        ("rect", "a"), ("line", "a"), ("rect", "b"), ("line", "b")
    ]  # fmt: skip
