"""Figures of the code base that stay within a bound; `make figures` prints each, docs/STYLE.md says why."""

from __future__ import annotations

import pytest

from tests.project import figures

PROSE_MAX = 3.0
PROSE_OF_A_FILE_MAX = 4.6
"""The file at the bound is the help of `producers open`, whose sentences are an interface of the command line."""
UNTYPED_ROWS_MAX = 36
ALIASED_ROWS_MAX = 14
"""`to_json` makes objects of JSON; commands and reports work on rows."""
LONG_SIGNATURES_MAX = 36
STORE_LINES_MAX = 440
README_WORDS_MAX = 900
SEND_MODULES_MAX = 15


@pytest.mark.parametrize("package", figures.PACKAGES)
def test_the_prose_of_a_package_names_its_things(package: str) -> None:
    """At most three pronoun-like words in a hundred words of docstrings and comments."""
    assert figures.prose_of_packages()[package].per_100_words <= PROSE_MAX


def test_the_prose_of_each_file_names_its_things() -> None:
    """No file with a hundred words of prose is far above the rest."""
    above = [
        f"{path}: {count.per_100_words:.1f}"
        for path, count in figures.prose_of_files().items()
        if count.per_100_words > PROSE_OF_A_FILE_MAX
    ]
    assert above == []


def test_rows_have_types() -> None:
    """`dict[str, Any]` is left where a value is JSON by nature."""
    untyped = figures.untyped_rows()
    assert sum(untyped.values()) <= UNTYPED_ROWS_MAX, untyped
    aliased = figures.aliased_rows()
    assert sum(aliased.values()) <= ALIASED_ROWS_MAX, aliased


def test_signatures_are_short() -> None:
    """Functions with more than five parameters are few; public signatures aside."""
    long = figures.long_signatures()
    assert len(long) <= LONG_SIGNATURES_MAX, "\n".join(map(str, long))


def test_no_method_name_has_many_meanings() -> None:
    """At most eight definitions of one method name, protocols aside."""
    assert figures.common_method_names() == {}


def test_variables_name_their_values() -> None:
    """No variable is called `found`, `each` or `mine`."""
    assert figures.empty_names() == []


def test_no_two_classes_have_one_name() -> None:
    """A class is found by its name."""
    assert figures.class_names_given_twice() == {}


def test_no_docstring_leaves_a_duty_to_its_caller() -> None:
    """The batch writes the state of open objects; no caller has to."""
    assert figures.unsaved_duties() == []


def test_the_store_only_hands_out_and_makes() -> None:
    """storage/store.py stays short, README.md too."""
    assert len((figures.ROOT / "storage/store.py").read_text().splitlines()) <= STORE_LINES_MAX
    assert len((figures.ROOT / "README.md").read_text().split()) <= README_WORDS_MAX


def test_one_send_runs_in_few_modules() -> None:
    """Reading one send from the call to the commit takes few files."""
    modules = figures.modules_of_one_send()
    assert len(modules) <= SEND_MODULES_MAX, "\n".join(modules)
