"""The session of one job: the logs that it turns off."""

from __future__ import annotations

import logging

import pytest

from txnctl.spark.runtime import session


@pytest.mark.needs_program("java")
def test_a_thread_that_meets_a_killed_jvm_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """py4j reports it to the root logger, with a trace; further messages of that logger pass."""
    session._silence_pyspark()
    with caplog.at_level(logging.ERROR):
        logging.exception("Exception while sending command.")
        logging.error("a message of the program")
    assert [record.message for record in caplog.records] == ["a message of the program"]
