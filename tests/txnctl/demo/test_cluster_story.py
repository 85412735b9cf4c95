"""The bank's story on a primary and a synchronous standby, from beginning to end."""

from __future__ import annotations

import re

import pytest

from txnctl.demo import cluster, cluster_story


@pytest.mark.needs_program("initdb")
def test_every_check_of_the_story_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """With a primary that is killed in the middle, in six acts; no process and no file is left."""
    status = cluster_story.main(["--accounts", "12"])
    told = capsys.readouterr().out
    assert status == 0, told
    assert "FAILED" not in told
    assert re.findall(r"^(\d)\. ", told, re.MULTILINE) == list("123456")
    held, of = re.findall(r"(\d+) of (\d+) checks held", told)[0]
    assert held == of
    assert int(held) >= 20


def test_without_postgresql_the_message_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The story ends with one line and a hint, and no traceback."""
    monkeypatch.setattr(cluster, "_directory", lambda: None)
    assert cluster_story.main([]) != 0
    complaint = capsys.readouterr().err
    assert "PostgreSQL's server is not installed here" in complaint
    assert "apt-get install postgresql" in complaint
