"""The base of rows does what `typing.NamedTuple` does: every test runs with both."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
import typing
from typing import Any, Generic, TypeVar

import pytest

from storage.json_form import to_json
from storage.values.named_tuple import NamedTuple

T = TypeVar("T")


class TypingRow(typing.NamedTuple):
    """A row."""

    first: int
    second: str | None
    third: list[int] = [3]  # noqa: RUF012  a default of any type
    at_ms: int = 4

    @property
    def double(self) -> int:
        """Twice the first field."""
        return self.first * 2

    @classmethod
    def of(cls, first: int) -> Any:
        """Make a row of the first field."""
        return cls(first, None)


class OwnRow(NamedTuple):
    """A row."""

    first: int
    second: str | None
    third: list[int] = [3]  # noqa: RUF012  a default of any type
    at_ms: int = 4

    @property
    def double(self) -> int:
        """Twice the first field."""
        return self.first * 2

    @classmethod
    def of(cls, first: int) -> Any:
        """Make a row of the first field."""
        return cls(first, None)


class TypingBox(typing.NamedTuple, Generic[T]):
    """A row with a type parameter."""

    content: T
    count: int = 0


class OwnBox(NamedTuple, Generic[T]):
    """A row with a type parameter."""

    content: T
    count: int = 0


class TypingEmpty(typing.NamedTuple):
    """A row without fields."""


class OwnEmpty(NamedTuple):
    """A row without fields."""


class TypingPair(TypingRow):
    """A class derived from a row."""

    __slots__ = ()


class OwnPair(OwnRow):
    """A class derived from a row."""

    __slots__ = ()


both = pytest.mark.parametrize("row", [TypingRow, OwnRow])
both_boxes = pytest.mark.parametrize("box", [TypingBox, OwnBox])


@both
def test_a_row_is_made_by_position_and_by_name(row: Any) -> None:
    """Both ways mix, and defaults fill the rest."""
    whole = (1, "b", [3], 5)
    assert row(1, "b", [3], 5) == whole
    assert row(1, "b", at_ms=5) == whole
    assert row(at_ms=5, second="b", first=1) == whole
    assert row(1, None) == (1, None, [3], 4)
    assert type(row(1, "b")) is row
    assert row.of(1) == (1, None, [3], 4)


@both
@pytest.mark.parametrize(
    ("values", "by_name"),
    [((), {}), ((1,), {}), ((1, 2, 3, 4, 5), {}), ((1, 2), {"first": 3}), ((1, 2), {"fifth": 3})],
)
def test_wrong_arguments_are_refused(row: Any, values: tuple[int, ...], by_name: dict[str, int]) -> None:
    """The error is Python's, and names the class."""
    with pytest.raises(TypeError, match="__new__"):
        row(*values, **by_name)


@both
def test_a_row_is_a_tuple(row: Any) -> None:
    """Comparing, hashing, unpacking and slicing are those of a tuple; a row has no further attributes."""
    made = row(1, "b", (), 5)
    first, *rest = made
    assert (first, rest, made[1:3], len(made)) == (1, ["b", (), 5], ("b", ()), 4)
    assert isinstance(made, tuple)
    assert hash(made) == hash((1, "b", (), 5))
    assert made < (2,)
    assert not hasattr(made, "__dict__")
    with pytest.raises(AttributeError):
        made.first = 2
    with pytest.raises(AttributeError):
        made.fifth = 2


@both
def test_fields_are_read_by_name(row: Any) -> None:
    """Fields and properties of the class body are attributes."""
    made = row(1, "b")
    assert (made.first, made.second, made.third, made.at_ms, made.double) == (1, "b", [3], 4, 2)
    assert row.first.__doc__ == "Alias for field number 0"


@both
def test_a_class_describes_itself(row: Any) -> None:
    """Names, defaults, patterns, module and docstring are attributes of the class."""
    names = ("first", "second", "third", "at_ms")
    assert row._fields == row.__match_args__ == names
    assert row._field_defaults == {"third": [3], "at_ms": 4}
    assert (row.__module__, row.__doc__) == (__name__, "A row.")
    assert type(row) is type
    assert list(row.__annotations__) == list(names)
    assert typing.get_type_hints(row) == {
        "first": int, "second": str | None, "third": list[int], "at_ms": int,
    }  # fmt: skip
    row(1, "b")
    assert str(inspect.signature(row)).startswith("(first")


@both
def test_a_row_is_shown_with_names(row: Any) -> None:
    """A value that looks like a format stays a value."""
    assert repr(row(1, "%s{}")) == f"{row.__name__}(first=1, second='%s{{}}', third=[3], at_ms=4)"


@both
def test_the_methods_of_named_tuples(row: Any) -> None:
    """`_make`, `_replace` and `_asdict` keep the class and check names and number."""
    made = row._make(iter([1, "b", [3], 4]))
    assert (type(made), made) == (row, (1, "b", [3], 4))
    assert made._asdict() == {"first": 1, "second": "b", "third": [3], "at_ms": 4}
    changed = made._replace(second="c", at_ms=0)
    assert (type(changed), changed, made) == (row, (1, "c", [3], 0), (1, "b", [3], 4))
    assert made._replace() == made
    with pytest.raises(TypeError, match="Expected 4 arguments, got 2"):
        row._make([1, 2])
    with pytest.raises((TypeError, ValueError), match=r"Got unexpected field names: \['fifth'\]"):
        made._replace(fifth=5)


@both
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_row_is_pickled(row: Any, protocol: int) -> None:
    """Reading gives the same class and values."""
    made = row(1, "b")
    again = pickle.loads(pickle.dumps(made, protocol))
    assert (type(again), again) == (row, made)


@both
def test_a_row_is_copied(row: Any) -> None:
    """A deep copy copies values."""
    made = row(1, "b")
    shallow, deep = copy.copy(made), copy.deepcopy(made)
    assert shallow == deep == made
    assert type(shallow) is type(deep) is row
    assert deep.third is not made.third


@both
def test_a_row_matches_a_pattern(row: Any) -> None:
    """By position and by name."""
    match row(1, "b"):
        case row(first, second="b"):
            assert first == 1
        case _:
            pytest.fail("no pattern")


@both_boxes
def test_a_row_has_type_parameters(box: Any) -> None:
    """`Box[int]` makes rows, and tells origin and arguments."""
    assert box[int](1) == box(1) == (1, 0)
    assert type(box[int](1)) is box
    assert (box[int].__origin__, box[int].__args__, box.__parameters__) == (box, (int,), (T,))
    assert issubclass(box, tuple)
    assert issubclass(box, Generic)


@pytest.mark.parametrize("empty", [TypingEmpty, OwnEmpty])
def test_a_row_without_fields(empty: Any) -> None:
    """The row is an empty tuple."""
    assert (empty(), empty._fields, repr(empty())) == ((), (), f"{empty.__name__}()")


@pytest.mark.parametrize("pair", [TypingPair, OwnPair])
def test_a_class_is_derived_from_a_row(pair: Any) -> None:
    """Rows of the derived class have that class, whichever class makes the first row."""
    made = pair(1, second="b")
    assert (type(made), made) == (pair, (1, "b", [3], 4))
    assert type(made._replace(first=2)) is pair


@both
def test_the_json_form_of_a_row(row: Any) -> None:
    """Names and annotations decide the form."""
    assert to_json(row(1, None))["atMs"] == 4


def test_threads_make_the_first_row_at_once() -> None:
    """Each thread gets its own row."""

    class Shared(NamedTuple):
        """A class that no row was made of."""

        number: int

    start = threading.Barrier(4)
    rows: list[Any] = []

    def make(number: int) -> None:
        start.wait()
        rows.append(Shared(number))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(rows) == [(0,), (1,), (2,), (3,)]
    assert {type(row) for row in rows} == {Shared}


def test_a_body_calls_the_methods_of_the_tuple() -> None:
    """`super()` works in a method, and a method of the body hides one of the base."""

    class Shown(NamedTuple):
        """A row with a text form of its own."""

        number: int

        def __repr__(self) -> str:
            return f"<{super().__repr__()}>"

    assert repr(Shown(1)) == "<Shown(number=1)>"
