"""Tables that come in pages: columns stay in line, and a column that comes later gets new headings."""

from __future__ import annotations

from txnctl.output.paged_table import PagedTable


def test_later_pages_are_in_line_with_earlier_ones() -> None:
    """Without headings of their own."""
    table = PagedTable(["ID", "VALUE"])
    assert table.page([{"ID": "1:0", "VALUE": "a"}]) == "ID   VALUE\n1:0  a\n"
    assert table.page([{"ID": "1", "VALUE": "b"}]) == "1    b\n"


def test_a_wider_cell_widens_the_column_from_there_on() -> None:
    """What was printed stays."""
    table = PagedTable(["ID", "VALUE"])
    table.page([{"ID": "1", "VALUE": "a"}])
    assert table.page([{"ID": "12:34", "VALUE": "b"}]) == "12:34  b\n"
    assert table.page([{"ID": "1", "VALUE": "c"}]) == "1      c\n"


def test_a_column_without_values_is_left_out_until_it_has_one() -> None:
    """Then the headings come again; a cell without a value is a dash, unless it is the last."""
    table = PagedTable(["ID"])
    assert table.page([{"ID": "1", "KEY": "", "VALUE": ""}]) == "ID\n1\n"
    assert table.page([{"ID": "2", "KEY": "k", "VALUE": ""}, {"ID": "3", "KEY": "", "VALUE": ""}]) == (
        "ID  KEY\n2   k\n3\n"
    )
    assert table.page([{"ID": "4", "KEY": "", "VALUE": "v"}]) == "ID  KEY  VALUE\n4   -    v\n"


def test_no_rows_are_nothing() -> None:
    """Before and after the first page."""
    table = PagedTable(["ID"])
    assert table.page([]) == ""
    table.page([{"ID": "1"}])
    assert table.page([]) == ""


def test_a_key_that_is_wider_than_the_terminal_goes_on_below() -> None:
    """Whole, in lines of the width."""
    text = PagedTable(("KEY", "VALUE"), 60).page([{"KEY": "k" * 300, "VALUE": "v" * 100}])
    assert max(map(len, text.splitlines())) <= 60
    assert (text.count("k"), text.count("v")) == (300, 100)
