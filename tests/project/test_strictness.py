"""With CI=true a test that does not run has failed; elsewhere it is named."""

from pathlib import Path

import pytest

RULES = Path(__file__).parents[1] / "not_run.py"

# The small suite gives up on purpose: the rule of skips is proved on it, and no test of the project is skipped.
SUITE = """
    import pytest

    @pytest.mark.needs_program("no-such-program-anywhere")
    def test_in_need():
        raise AssertionError("must not start")

    @pytest.mark.needs_program("sh")
    def test_satisfied():
        pass

    def test_giving_up():
        pytest.skip("not today")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A small suite under the rules of this one."""
    pytester.makeconftest(RULES.read_text())
    pytester.makeini("[pytest]\naddopts = -p no:hypothesispytest\nmarkers = needs_program(*names): programs")
    pytester.makepyfile(SUITE)
    return pytester


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_cannot_run_is_named_with_the_way_to_get_what_it_needs(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
):
    """Without CI the run passes, and its end says what was not run and what to install."""
    monkeypatch.delenv("CI", raising=False)
    result = suite.runpytest_subprocess("-n", workers)
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "*not run on this machine*",
            "1 test: no-such-program-anywhere is missing (apt-get install *",
            "1 test: not today",
        ]
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_in_ci_a_test_that_cannot_run_has_failed(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
):
    """With CI=true the same suite fails, however the workers are spread."""
    monkeypatch.setenv("CI", "true")
    result = suite.runpytest_subprocess("-n", workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*no-such-program-anywhere is missing*"])
    assert "1 passed" in result.stdout.lines[-1]
    assert "skipped" not in result.stdout.lines[-1]


def test_in_ci_a_file_that_skips_itself_has_failed(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """A skip at the head of a file is a failure too, not an empty file."""
    monkeypatch.setenv("CI", "true")
    suite.makepyfile(test_whole='import pytest\npytest.importorskip("no_such_module_anywhere")\n')
    result = suite.runpytest_subprocess()
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*With CI=true a test that does not run has failed.*"])


def test_in_ci_an_expected_failure_stays_one(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """xfail is no skip: it ran."""
    monkeypatch.setenv("CI", "true")
    # An expected failure of the small suite alone, which shows that the rule leaves it one.
    suite.makepyfile("import pytest\n@pytest.mark.xfail(strict=True)\ndef test_wrong():\n    assert 1 == 2\n")
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(xfailed=1)
