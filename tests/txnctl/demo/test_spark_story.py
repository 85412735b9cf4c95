"""The bank's story on Spark, from beginning to end."""

from __future__ import annotations

import re

import pytest

from txnctl.demo import spark_story


@pytest.mark.needs_program("java")
def test_every_check_of_the_story_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """With a driver that is killed in the middle, in six acts; nothing that was started is left."""
    status = spark_story.main(["--accounts", "12"])
    told = capsys.readouterr().out
    assert status == 0, told
    assert "FAILED" not in told
    assert re.findall(r"^(\d)\. ", told, re.MULTILINE) == list("123456")
    held, of = re.findall(r"(\d+) of (\d+) checks held", told)[0]
    assert held == of
    assert int(held) >= 15
