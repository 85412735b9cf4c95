"""One version, said in several places; one set of dependencies, said in two."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def pins() -> dict[str, str]:
    """The constraints file: name to exact version."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    return dict(line.split("==") for line in lines)


def requirements() -> list[Requirement]:
    """Everything that pyproject.toml asks for, extras and build included."""
    extras = PROJECT["optional-dependencies"].values()
    asked = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    return [Requirement(line) for line in [*asked, *PYPROJECT["build-system"]["requires"]]]


def test_the_package_says_the_version_of_pyproject():
    """`txnctl.__version__` and `txnctl version` say what pyproject.toml says."""
    import txnctl

    assert txnctl.__version__ == PROJECT["version"]
    run = subprocess.run(
        [sys.executable, "-m", "txnctl", "version"], capture_output=True, text=True, check=True
    )
    assert PROJECT["version"] in run.stdout


def test_man_pages_say_the_version_of_pyproject():
    """Every man page carries the version in its title."""
    pages = sorted((ROOT / "man").glob("*.[157]"))
    assert pages
    for page in pages:
        title = next(line for line in page.read_text().splitlines() if line.startswith(".TH"))
        assert f"txnctl {PROJECT['version']}" in title, page.name


def test_the_changelog_leads_to_the_version_of_pyproject():
    """Its first heading is this version, or what comes after the last one."""
    first = re.search(r"^## \[?([\w.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first
    assert first[1] in {"Unreleased", PROJECT["version"]}


def test_the_constraints_are_exact_versions_and_name_no_registry():
    """Each line is `name==version`: no address, no option, no range."""
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"#.*||[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_dependency_is_pinned_within_its_bounds(requirement: Requirement):
    """The version that is tried is one that pyproject.toml allows."""
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])


def test_all_tools_check_for_the_oldest_python_that_is_promised():
    """requires-python, ruff, mypy and the Makefile agree on the oldest Python, and this one is allowed."""
    oldest = PROJECT["requires-python"].removeprefix(">=")
    tools = PYPROJECT["tool"]
    assert tools["mypy"]["python_version"] == oldest
    assert tools["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert f"sys.version_info < ({oldest.replace('.', ', ')})" in (ROOT / "Makefile").read_text()
    assert SpecifierSet(PROJECT["requires-python"]).contains("{}.{}.{}".format(*sys.version_info))
