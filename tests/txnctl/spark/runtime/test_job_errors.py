"""What Spark raises, as the errors of txnctl."""

from __future__ import annotations

from traceback import format_exception

import pytest

from storage.errors import BadInput, BadLine, InvalidValue, JobFailed, JvmDied, ProgramMissing, TopicNotFound
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.runtime.job_errors import as_error, as_txnctl_errors

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


def test_details_come_back_with_the_error() -> None:
    """Behind the hint, or where there is none; a path may hold a brace."""
    for hint in (None, "Leave it out."):
        with pytest.raises(BadLine) as raised, hints_as_notes():
            raise BadLine("/a/b.csv: line 3: not JSON", hint=hint, path="/a/}.csv", line=3)
        error = as_error(
            RuntimeError("".join(format_exception(raised.value)) + "\n\tat org.apache.X(X.scala:1)")
        )
        assert isinstance(error, BadLine)
        assert (error.message, error.hint) == ("/a/b.csv: line 3: not JSON", hint)
        assert error.details == {"path": "/a/}.csv", "line": 3}


def test_what_spark_refuses_is_bad_input_and_the_rest_a_failed_job() -> None:
    """Neither is taken for a bug of txnctl."""
    from pyspark.errors import AnalysisException, PySparkException

    missing = AnalysisException(message="[PATH_NOT_FOUND] Path does not exist: x.", errorClass=None)
    assert as_error(missing).exit_code == InvalidValue.exit_code
    failed = as_error(PySparkException(message="Job aborted due to stage failure"))
    assert (type(failed), failed.exit_code) == (JobFailed, 12)
    assert failed.message == "the Spark job failed: Job aborted due to stage failure"


TASK = "Job aborted due to stage failure: most recent failure: Lost task 0.3 in stage 1.0 (TID 7) (10.0.0.7 executor 2): "


@pytest.mark.parametrize(
    ("text", "kind", "says", "advice"),
    [
        (
            TASK + 'Traceback (most recent call last):\n  File "/v/lib/python3/site-packages/pyspark/x.py"\n'
            "ModuleNotFoundError: No module named 'txnctl'\n",
            ProgramMissing,
            "the Python of Spark (in /v) has no module txnctl, in a task on host 10.0.0.7",
            "spark.submit.pyFiles",
        ),
        (
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'lmdb'\n",
            ProgramMissing,
            "the Python of Spark has no module lmdb",
            "PYSPARK_PYTHON names that Python",
        ),
        (
            TASK + "java.lang.OutOfMemoryError: Java heap space\n\tat x",
            JobFailed,
            "the JVM of Spark ran out of memory, in a task on host 10.0.0.7",
            "spark.executor.memory",
        ),
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
            JobFailed,
            "a Python process of Spark was killed or crashed, mostly for want of memory",
            "local[1]",
        ),
        (
            TASK
            + "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: code 137",
            JobFailed,
            (
                "an executor was lost: killed, mostly for want of memory, or its machine is gone, in a task on host "
                "10.0.0.7"
            ),
            "spark.executor.memory",
        ),
        (
            TASK + 'Traceback (most recent call last):\n  File "x"\nValueError: no number\n',
            JobFailed,
            "the Spark job failed: ValueError: no number, in a task on host 10.0.0.7",
            "--debug",
        ),
    ],
)
def test_a_failure_of_processes_names_host_and_remedy(
    text: str, kind: type[Exception], says: str, advice: str
) -> None:
    """What failed, where, and the option that helps."""
    error = as_error(RuntimeError(text))
    assert (type(error), error.message) == (kind, says)
    assert advice in (error.hint or "")


def test_a_lost_connection_and_a_refusal_of_pyarrow() -> None:
    """A JVM that is gone, and a file system that is not known; an error of the program passes."""
    from py4j.protocol import Py4JNetworkError
    from pyarrow import ArrowInvalid

    with pytest.raises(JvmDied, match="the JVM of Spark is gone"), as_txnctl_errors():
        raise Py4JNetworkError("Answer from Java side is empty")
    with pytest.raises(BadInput, match="Unrecognized filesystem"), as_txnctl_errors():
        raise ArrowInvalid("Unrecognized filesystem type in URI: x://y")
    with pytest.raises(KeyError), as_txnctl_errors():
        raise KeyError("x")
