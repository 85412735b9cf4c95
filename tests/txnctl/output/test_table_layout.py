"""The layout of tables: whole where there is room, else less and less, and never a changed id."""

from __future__ import annotations

from hypothesis import given, strategies as st

from txnctl.output.table_layout import LaidColumn, Short, laid_out

ID = LaidColumn("ID", "id", ["0:1", "0:22"])
TEXT = LaidColumn("TEXT", "text", ["a word and another one, and so on", "short"])


def lines(*columns: LaidColumn, width: int | None) -> list[str]:
    return list(laid_out(columns, width))


def test_a_table_that_fits_is_left_whole() -> None:
    """Empty and equal columns included: what is seen does not depend on the rows."""
    columns = (ID, LaidColumn("SAME", "text", ["x", "x"], 1), LaidColumn("NONE", "text", ["-", "-"], 2))
    expected = ["ID    SAME  NONE", "0:1   x     -", "0:22  x     -"]
    assert lines(*columns, width=16) == lines(*columns, width=None) == expected


def test_no_rows_are_no_table() -> None:
    """Nor are no columns."""
    assert not laid_out([LaidColumn("A", "id", [])], 80)
    assert lines(width=80) == []


def test_empty_columns_go_first_and_silently() -> None:
    """There is nothing to say about them."""
    assert lines(ID, LaidColumn("NOTHING", "text", ["-", ""]), width=10) == ["ID", "0:1", "0:22"]


def test_what_every_row_says_stands_above() -> None:
    """As far as needed, by rank; without a rank where it tells no rows apart."""
    level, count = LaidColumn("LEVEL", "text", ["low"] * 2, 1), LaidColumn("COUNT", "integer", ["0"] * 2, 2)
    assert lines(ID, level, count, width=12) == [
        "Every row:",
        "  COUNT 0.",
        "ID    LEVEL",
        "0:1   low",
        "0:22  low",
    ]
    same = LaidColumn("OF", "id", ["x" * 12] * 2)
    assert lines(same, ID, width=24)[:2] == lines(same, ID, width=None)[:2]
    other = LaidColumn("OTHER", "id", ["y" * 20, "z" * 20])
    assert lines(same, other, width=30)[:3] == ["Every row: OF xxxxxxxxxxxx.", "OTHER", "y" * 20]
    [_, *rest] = lines(LaidColumn("OF", "id", ["x" * 12]), LaidColumn("ID", "id", ["0:1"]), width=16)
    assert rest == ["    ID", "x" * 12, "    0:1"]


def test_the_number_of_the_only_row_is_no_fact() -> None:
    """`Also: # 1.` is no sentence; the number goes, and a fact with a name stays."""
    number = LaidColumn("#", "integer", ["1"], rank=2)
    own = LaidColumn("OWN", "integer", ["4"], rank=1)
    names = LaidColumn("NAME", "id", ["x" * 16])
    assert lines(number, names, width=18) == ["NAME", "x" * 16]
    assert lines(number, own, names, width=18) == ["Also: OWN 4.", "NAME", "x" * 16]


def test_words_are_shortened_before_a_column_goes() -> None:
    """Where the column declares how."""
    level = LaidColumn(
        "LONG LEVEL", "text", ["READ_COMMITTED", "?"], 1, Short("LEVEL", {"READ_COMMITTED": "rc"})
    )
    assert lines(ID, level, width=12) == ["ID    LEVEL", "0:1   rc", "0:22  ?"]


def test_a_column_that_goes_is_named_with_the_way_to_see_it() -> None:
    """The highest rank first; what fits beside the rest comes back."""
    wide = LaidColumn("WIDE", "id", ["x" * 30, "y" * 30], 2)
    small = LaidColumn("N", "integer", ["1", "2"], 3)
    shown = lines(ID, wide, small, width=33)
    assert shown == ["ID    N", "0:1   1", "0:22  2", "Not shown: WIDE; -o wide shows", "  all."]


def test_texts_are_folded_and_only_as_far_as_needed() -> None:
    """The widest first; words stay whole."""
    assert lines(ID, TEXT, width=30) == [
        "ID    TEXT",
        "0:1   a word and another one,",
        "      and so on",
        "0:22  short",
    ]


def test_what_does_not_fit_goes_to_further_lines_of_the_row() -> None:
    """The headings do too."""
    other = LaidColumn("OTHER", "id", ["y" * 18, "z"])
    shown = lines(LaidColumn("ONE", "id", ["x" * 18, "w"]), other, width=30)
    assert shown == ["ONE", "    OTHER", "x" * 18, "    " + "y" * 18, "w", "    z"]


NAMES = st.text("abc", min_size=1, max_size=30)


@given(st.lists(st.tuples(st.sampled_from(["id", "text", "integer", "list"]), NAMES, NAMES, st.integers(0, 3)), min_size=1),
       st.integers(40, 100))  # fmt: skip
def test_no_line_is_wider_and_no_id_is_changed(declared: list[tuple[str, str, str, int]], width: int) -> None:
    """Whatever the columns: ids of at most half the width are there as they are."""
    columns = [
        LaidColumn(f"H{at}", kind, [first, second], 0 if kind == "id" else rank)
        for at, (kind, first, second, rank) in enumerate(declared)
    ]
    text = str(laid_out(columns, width))
    assert max(map(len, text.split("\n"))) <= width
    for column in columns:
        if column.kind == "id":
            assert all(cell in text for cell in column.cells)


def test_a_name_that_is_wider_than_the_terminal_goes_on_below() -> None:
    """Nothing is cut off, and no line is wider."""
    name = "n" * 50 + "o" * 78
    shown = lines(LaidColumn("NAME", "id", [name]), LaidColumn("KEYS", "list", ["k" * 300]), width=60)
    assert max(map(len, shown)) <= 60
    assert "".join([line.strip() for line in shown]).startswith(f"NAMEKEYS{name}kkk")
    assert "".join(shown).count("k") == 300
