"""Figures of the code base in one table: `make figures`. tests/project/test_figures.py holds each of them.

A figure is a thermometer, not the goal; docs/STYLE.md says what each of them stands for.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.project.prose import ProseCount, count_files

ROOT = Path(__file__).parents[2]
PACKAGES = ("storage", "txnctl")
PARAMETERS_MAX = 5
DEFINITIONS_MAX = 8
PROSE_WORDS_MIN = 100
"""Words from which on a file's own prose is judged."""
EMPTY_NAMES = frozenset({"found", "each", "mine", "wanted", "by", "told", "there"})
"""Names of variables that say nothing about the value."""
MODULE_LINES_MIN = 15
"""Lines of code from which on a module wants a test file of its own."""

PROTOCOLS = {
    "close": "the end of what a `with` statement opens",
    "last": "cursors of LMDB, which the overlay of a dry run answers as",
    "store_path": "objects that Spark ships to tasks",
    "decode": "the codec of a record",
    "encode": "the codec of a record",
    "forked": "the environments of both engines and their parts, in the child of a fork",
    "read": "DataSourceReader of Spark, and binary streams",
    "commit": "DataSourceWriter of Spark, Transaction, the coordinator",
    "write": "DataSourceWriter of Spark, and text streams",
    "shell_complete": "ParamType of click",
    "convert": "ParamType of click",
}
"""Method names with more definitions than DEFINITIONS_MAX, and the protocol that each belongs to."""

_DECORATORS_OF_COMMANDS = ("reads_store", "changes_store", "option", "argument", "example", "output")
_PUBLIC_SIGNATURES = (
    "storage/store.py",
    "storage/client/consumer.py",
    "storage/client/producer.py",
    "storage/client/reader.py",
    "storage/client/table.py",
    "storage/client/transaction.py",
    "storage/maintenance/store_maker.py",
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or method: its place, its name, and how many parameters a caller sees."""

    path: str
    line: int
    name: str
    parameters: int
    is_method: bool
    is_public_signature: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name} ({self.parameters})"


def modules() -> list[Path]:
    """All modules of the packages, as paths below the root."""
    return sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    """A module, parsed once for all figures."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


@cache
def prose() -> dict[Path, ProseCount]:
    """The prose of each module."""
    return {
        path.relative_to(ROOT): count
        for path, count in count_files(ROOT / path for path in modules()).items()
    }


def prose_of_packages() -> dict[str, ProseCount]:
    """The prose of each package."""
    return {
        package: sum([count for path, count in prose().items() if path.parts[0] == package], ProseCount())
        for package in PACKAGES
    }


def prose_of_files() -> dict[Path, ProseCount]:
    """The prose of each file that has enough of it to be judged."""
    return {path: count for path, count in prose().items() if count.words >= PROSE_WORDS_MIN}


def untyped_rows() -> dict[str, int]:
    """`dict[str, Any]` by module."""
    counts = {
        str(path): (ROOT / path).read_text(encoding="utf-8").count("dict[str, Any]") for path in modules()
    }
    return {path: count for path, count in counts.items() if count}


def aliased_rows() -> dict[str, int]:
    """Uses of `JsonObject`, the alias of `dict[str, Any]`, by module: objects of JSON without a type."""
    counts = {str(path): (ROOT / path).read_text(encoding="utf-8").count("JsonObject") for path in modules()}
    return {path: count for path, count in counts.items() if count}


def empty_names() -> list[str]:
    """Variables and parameters that name nothing (docs/STYLE.md). Fields of rows are names of JSON, and not counted."""
    names = []
    for path in modules():
        tree = tree_of(path)
        fields = {
            id(statement.target)
            for owner in ast.walk(tree)
            if isinstance(owner, ast.ClassDef)
            for statement in owner.body
            if isinstance(statement, ast.AnnAssign)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.arg) and node.arg in EMPTY_NAMES:
                names.append(f"{path}:{node.lineno} {node.arg}")
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
                names += [f"{path}:{node.lineno} {node.id}"] if node.id in EMPTY_NAMES else []
    return names


@cache
def definitions() -> list[Definition]:
    """Every function and method of the packages."""
    return [each for path in modules() for each in _definitions_of(path)]


def _definitions_of(path: Path) -> Iterator[Definition]:
    tree = tree_of(path)
    methods = {
        id(node)
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if names[:1] in (["self"], ["cls"]):
                del names[0]
            yield Definition(
                str(path), node.lineno, node.name, len(names), id(node) in methods, _is_public(path, node)
            )


def _is_public(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a signature is the users' own: an overload, a command's callback, the Python API."""
    decorators = [ast.unparse(each).split("(")[0] for each in node.decorator_list]
    if "overload" in decorators or any(
        each in _DECORATORS_OF_COMMANDS or each.endswith(".command") for each in decorators
    ):
        return True
    return str(path) in _PUBLIC_SIGNATURES and not node.name.startswith("_")


def long_signatures() -> list[Definition]:
    """Functions with more than PARAMETERS_MAX parameters; public signatures aside."""
    return [
        each for each in definitions() if each.parameters > PARAMETERS_MAX and not each.is_public_signature
    ]


def common_method_names() -> dict[str, int]:
    """Method names with more than DEFINITIONS_MAX definitions, dunder names and PROTOCOLS aside."""
    counts = Counter(each.name for each in definitions() if each.is_method)
    return {
        name: count
        for name, count in counts.items()
        if count > DEFINITIONS_MAX and not name.startswith("__") and name not in PROTOCOLS
    }


def class_names_given_twice() -> dict[str, list[str]]:
    """Class names that stand in more than one module."""
    homes: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path))
    return {name: places for name, places in homes.items() if len(places) > 1}


def modules_without_tests() -> tuple[list[Path], int]:
    """Modules without a test file in the same place under tests/, and how many modules want one."""
    wanting = [
        path for path in modules() if path.name != "__init__.py" and _code_lines(path) >= MODULE_LINES_MIN
    ]
    without = [
        path for path in wanting if not (ROOT / "tests" / path.with_name(f"test_{path.name}")).exists()
    ]
    return without, len(wanting)


def _code_lines(path: Path) -> int:
    """Lines that hold code: neither blank, nor comment, nor docstring."""
    tree = tree_of(path)
    lines: set[int] = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and not is_text:
            lines.add(node.lineno)
    return len(lines)


def unsaved_duties() -> list[str]:
    """Docstrings that end in a duty of the caller: "the caller saves ..."."""
    duty = re.compile(r"caller (?:then )?(?:saves|writes|stores|puts)\b", re.IGNORECASE)
    return [str(path) for path in modules() if duty.search((ROOT / path).read_text(encoding="utf-8"))]


def deferred_imports() -> int:
    """Import statements inside functions."""
    return sum(
        isinstance(inner, ast.Import | ast.ImportFrom)
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    )


def modules_of_one_send() -> list[str]:
    """The modules of the engine whose functions run in one plain `Producer.send`, in order of the first call.

    Of several sends the one with the fewest: once a second a send looks for dead owners too.
    """
    import tempfile

    from storage import Store

    seen: dict[str, None] = {}
    sends: list[list[str]] = []
    prefix = str(ROOT / "storage") + "/"

    def note_call(frame: object, event: str, _argument: object) -> None:
        if event == "call":
            name = frame.f_code.co_filename  # type: ignore[attr-defined]
            if name.startswith(prefix):
                seen.setdefault(name.removeprefix(prefix), None)

    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/figures.store"
        Store.create(path)
        with Store.open(path) as store:
            store.create_topic("orders")
            producer = store.create_producer("orders")
            producer.send(b"warm")
            for _ in range(3):
                seen.clear()
                sys.setprofile(note_call)
                try:
                    producer.send(b"hello")
                finally:
                    sys.setprofile(None)
                sends.append(list(seen))
    return min(sends, key=len)


def main() -> None:
    """Print the table."""
    for package, count in prose_of_packages().items():
        print(f"{f'pronoun-like words per 100, {package}':52} {count.per_100_words:6.1f}   at most 3.0")
    worst = sorted(prose_of_files().items(), key=lambda item: -item[1].per_100_words)[:3]
    for path, count in worst:
        print(f"{f'  {path}':52} {count.per_100_words:6.1f}   at most 6.0")
    without, wanting = modules_without_tests()
    shown = (
        ("`dict[str, Any]`", sum(untyped_rows().values()), "at most 36"),
        ("uses of an alias of it", sum(aliased_rows().values()), "at most 14"),
        (f"functions with more than {PARAMETERS_MAX} parameters", len(long_signatures()), "at most 31"),
        (f"method names with more than {DEFINITIONS_MAX} definitions", len(common_method_names()), "0"),
        ("variables that name nothing", len(empty_names()), "0"),
        ("class names given twice", len(class_names_given_twice()), "0"),
        ("docstrings that end in a duty of the caller", len(unsaved_duties()), "0"),
        ("imports inside functions", deferred_imports(), "-"),
        ("modules that run in one send", len(modules_of_one_send()), "at most 13"),
        ("lines of storage/store.py", len((ROOT / "storage/store.py").read_text().splitlines()), "below 400"),
        ("words of README.md", len((ROOT / "README.md").read_text().split()), "at most 900"),
    )
    for label, figure, bound in shown:
        print(f"{label:52} {figure:6}   {bound}")
    print(
        f"{'modules with a test file of their own':52} {100 - 100 * len(without) // wanting:5}%   at least 80%"
    )
    if "--list" in sys.argv[1:]:
        for group in (
            long_signatures(),
            sorted(common_method_names().items(), key=lambda item: -item[1]),
            sorted(class_names_given_twice().items()),
            sorted(untyped_rows().items()),
            without,
        ):
            print()
            for row in group:
                print(f"  {row}")


if __name__ == "__main__":
    main()
