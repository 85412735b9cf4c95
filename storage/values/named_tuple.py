"""The base of rows: named tuples whose classes are cheap to make.

A class of `typing.NamedTuple` takes 0.15 to 0.3 ms, as Python compiles a constructor and every annotation. A short
command makes thirty such classes at each start, and rows of four. A class of this base takes 0.02 ms: the first row
compiles the constructor, and annotations stay text. Making and reading rows takes the same time with either base.

Type checkers read `typing.NamedTuple`.
"""

from __future__ import annotations

__all__ = ["NamedTuple"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import _tuplegetter

    _new_tuple = tuple.__new__

    class _Row(tuple):
        """The methods of all rows, as `collections.namedtuple` has them."""

        __slots__ = ()

        def __new__(cls, /, *values, **by_name):
            """Compile the constructor of a class of rows, and make the first row."""
            row = next(kind for kind in cls.__mro__ if "_fields" in vars(kind))
            names = "".join([f"{name}, " for name in row._fields])
            construct = eval(  # noqa: S307  the names are identifiers of the class body
                f"lambda _cls, {names}: _new_tuple(_cls, ({names}))",
                {"_new_tuple": _new_tuple},
            )
            construct.__qualname__ = f"{row.__qualname__}.__new__"
            construct.__defaults__ = tuple(row._field_defaults.values())
            row.__new__ = staticmethod(construct)
            return construct(cls, *values, **by_name)

        @classmethod
        def _make(cls, iterable):
            """Make a row of the values of an iterable."""
            row = _new_tuple(cls, iterable)
            if len(row) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(row)}")
            return row

        def _replace(self, /, **by_name):
            """Copy the row with new values of some fields."""
            row = self._make(map(by_name.pop, self._fields, self))
            if by_name:
                raise ValueError(f"Got unexpected field names: {list(by_name)!r}")
            return row

        __replace__ = _replace

        def _asdict(self):
            """Map names to values."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            pairs = zip(self._fields, self, strict=True)
            return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in pairs])})"

        def __getnewargs__(self):
            return tuple(self)

    class _RowType(type):
        """Turns the body of a class into a class of rows, an ordinary class without this metaclass."""

        def __new__(cls, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in fields if field in namespace}
            for index, field in enumerate(fields):
                namespace[field] = _tuplegetter(index, f"Alias for field number {index}")
            namespace |= {
                "__slots__": (),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
            }
            # Generic stands before the tuple: `Row[int]` of a tuple knows no type parameters.
            return type(name, (*[base for base in bases if base is not NamedTuple], _Row), namespace)

    NamedTuple = type.__new__(_RowType, "NamedTuple", (), {"__doc__": "The base of rows; see the module."})
