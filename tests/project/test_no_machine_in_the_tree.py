"""The project is the same wherever it lies: nothing of the machine it was written on is in it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE_BY_TOOLS = {"build", "dist", "__pycache__"}

SOMEBODYS_HOME = re.compile(r"(?<![\w.])/(?:(?:home|Users)/[a-z][\w.-]*|ro{2}t)/")
A_REGISTRY = re.compile(r"https?://[^/\s]*(?:pypi|pythonhosted|crates|npmjs)", re.IGNORECASE)


def project_files() -> Iterator[Path]:
    """Each file that is the project's own: what no tool made."""
    for directory, directories, files in os.walk(ROOT):
        directories[:] = [
            name
            for name in directories
            if name == ".ci"
            or not (name.startswith(".") or name in MADE_BY_TOOLS or name.endswith(".egg-info"))
        ]
        yield from (Path(directory, name) for name in files if not name.endswith(".pyc"))


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    """`file:line: text` of every line of the project in which the pattern occurs."""
    found = []
    for path in project_files():
        text = path.read_bytes().decode("utf-8", "replace")
        if pattern.search(text):
            found += [
                f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
                for number, line in enumerate(text.splitlines(), 1)
                if pattern.search(line)
            ]
    return found


def test_the_walk_sees_the_project():
    """The other tests of this file look at source, documents, and the hidden files that are ours."""
    seen = {str(path.relative_to(ROOT)) for path in project_files()}
    assert {"pyproject.toml", "Makefile", ".gitignore", ".ci/run", "storage/errors.py"} <= seen
    assert not any(name.startswith((".git/", ".venv/")) for name in seen)


def test_no_file_names_the_place_of_this_checkout_or_the_home_of_its_user():
    """Neither the directory of the checkout nor a home directory stands in any file."""
    # A place of one part, such as /tmp or /src, may well be meant in general.
    places = [str(place) for place in (ROOT, Path.home()) if len(place.parts) > 2]
    pattern = re.compile("|".join(rf"(?<![\w.]){re.escape(place)}(?![\w-])" for place in places) or r"(?!)")
    assert lines_matching(pattern) == []
    assert lines_matching(SOMEBODYS_HOME) == []


def test_no_file_names_a_package_registry():
    """Which registry to install from is the machine's affair."""
    assert lines_matching(A_REGISTRY) == []


@pytest.mark.parametrize(
    "name", [".github", ".gitlab-ci.yml", ".circleci", ".travis.yml", "azure-pipelines.yml"]
)
def test_ci_is_a_script_and_no_vendors(name: str):
    """`.ci/run` is all there is: any CI can call it."""
    assert not (ROOT / name).exists()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
