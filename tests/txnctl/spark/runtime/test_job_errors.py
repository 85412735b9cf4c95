"""What Spark raises, as the errors of txnctl."""

from __future__ import annotations

import pytest

from storage.errors import BadLine, InvalidValue, TopicNotFound, TxnctlError
from txnctl.spark.runtime.job_errors import as_error, first_sentence

TRACE = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
storage.errors.StoreNotFound: there is no store

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/reader.py", line 2, in read
storage.errors.TopicNotFound: there is no topic orderz
Did you mean orders?

\tat org.apache.spark.Something(Something.scala:1)
"""


def test_the_error_that_was_raised_last_is_the_one() -> None:
    """Its kind, its message, and its hint where the traceback has one."""
    error = as_error(RuntimeError(TRACE))
    assert type(error) is TopicNotFound
    assert (error.message, error.hint, error.exit_code) == (
        "there is no topic orderz",
        "Did you mean orders?",
        3,
    )
    without = as_error(RuntimeError(TRACE.replace("Did you mean orders?\n", "")))
    assert (type(without), without.hint) == (TopicNotFound, None)


def test_what_java_caused_is_looked_through() -> None:
    """The text of the innermost exception counts, however deep it is."""

    class Java:
        def __init__(self, message: str, cause: Java | None) -> None:
            self.getMessage = lambda: message
            self.getCause = lambda: cause

    outer = RuntimeError("Job aborted")
    outer.java_exception = Java("Job aborted", Java(None, Java(TRACE, None)))  # type: ignore[attr-defined, arg-type]
    assert type(as_error(outer)) is TopicNotFound


def test_a_bad_row_is_a_bad_line() -> None:
    """With its file and number."""
    text = (
        'Job aborted: txnctl-bad-row {"file":"file:///a/b.csv","row":3,"problem":"it is not JSON"} SQLSTATE'
    )
    error = as_error(RuntimeError(text))
    assert isinstance(error, BadLine)
    assert error.message == "/a/b.csv: line 3: it is not JSON"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03", "Path does not exist: file:/x"),
        ("[A.B_1] No.\n'Project ['x]\n\tat org.x", "No"),
        ("", "no message"),
    ],
)
def test_of_a_message_of_spark_the_first_sentence_is_kept(text: str, says: str) -> None:
    """Without its condition, its plan and its stack."""
    assert first_sentence(text) == says


def test_what_spark_refuses_is_bad_input_and_the_rest_a_failed_job() -> None:
    """Neither is taken for a bug of txnctl."""
    from pyspark.errors import AnalysisException, PySparkException

    missing = AnalysisException(message="[PATH_NOT_FOUND] Path does not exist: x.", errorClass=None)
    assert as_error(missing).exit_code == InvalidValue.exit_code
    failed = as_error(PySparkException(message="Job aborted due to stage failure"))
    assert type(failed) is TxnctlError
    assert failed.message == "the Spark job failed: Job aborted due to stage failure"
