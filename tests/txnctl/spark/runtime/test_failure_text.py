"""The sentence of Spark's texts that says why."""

from __future__ import annotations

import pytest

from txnctl.spark.runtime.failure_text import (
    FailedTask,
    cause,
    cause_in_log,
    failed_task,
    first_sentence,
    missing_module,
)

STAGE = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 1.0 (TID 7) (10.0.0.7 executor 2): "
)
PYTHON = STAGE + (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "/srv/venv/lib/python3.11/site-packages/pyspark/worker.py", line 1, in main\n'
    "    process()\n"
    "ModuleNotFoundError: No module named 'msgpack'\n"
    "\n\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:581)\n"
    "Driver stacktrace:"
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03", "Path does not exist: file:/x"),
        ("[A.B_1] No.\n'Project ['x]\n\tat org.x", "No"),
        ("", "no message"),
        ("java.lang.IllegalStateException: it is closed\n\tat x", "it is closed"),
        (
            "[STREAM_FAILED] Query [id = 1-2, runId = 3] terminated with exception: No such file SQLSTATE: XXKST",
            "No such file",
        ),
        ("java.lang.NullPointerException\n\tat x", "java.lang.NullPointerException"),
    ],
)
def test_of_a_message_the_first_sentence_is_kept(text: str, says: str) -> None:
    """Without its condition, the class of Java, its plan and its stack."""
    assert first_sentence(text) == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PYTHON, "ModuleNotFoundError: No module named 'msgpack'"),
        (STAGE + "java.lang.OutOfMemoryError: Java heap space\n\tat x", "OutOfMemoryError: Java heap space"),
        ("Path does not exist: x", "Path does not exist: x"),
        (
            (
                "An exception was thrown from the Python worker.\nTraceback (most recent call last):\n"
                '  File "x.py", line 3, in f\n    raise ValueError("no number")\nValueError: no number\n'
            ),
            "ValueError: no number",
        ),
    ],
)
def test_the_cause_is_behind_the_frame(text: str, says: str) -> None:
    """The exception of a Python worker, or the failure of the task, and not that a stage failed."""
    assert cause(text) == says


def test_the_task_and_the_module_that_it_lacks() -> None:
    """Host and executor of the task, and the environment of its Python."""
    assert failed_task(PYTHON) == FailedTask("10.0.0.7", "2")
    assert failed_task(PYTHON).is_remote  # type: ignore[union-attr]
    assert failed_task("Job aborted") is None
    assert missing_module(PYTHON) == ("msgpack", "/srv/venv")
    assert missing_module("Job aborted") is None


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (
            ("WARNING: Using incubator modules: jdk.incubator.vector\n"
            "26/11/23 18:00:00 WARN NativeCodeLoader: Unable to load native-hadoop library\n"
            'Exception in thread "main" org.apache.spark.SparkException: Master must be yarn or start with spark\n'
            "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1047)\n"
            "26/11/23 18:00:01 INFO ShutdownHookManager: Shutdown hook called\n"),
            "Master must be yarn or start with spark",
        ),
        (
            ("WARNING: Using incubator modules: jdk.incubator.vector\n"
            "Invalid initial heap size: -Xms9x\n"
            "Error: Could not create the Java Virtual Machine.\n"
            "Error: A fatal exception has occurred. Program will exit.\n"),
            "Invalid initial heap size: -Xms9x",
        ),
        (
            ("Picked up JDK_JAVA_OPTIONS: -Xss1m\n"
            "Error occurred during initialization of VM\n"
            "Could not reserve enough space for object heap\n"),
            "Could not reserve enough space for object heap",
        ),
        ("WARNING: Using incubator modules: jdk.incubator.vector\n", "no output"),
        ("/x/bin/spark-class: line 71: /y/bin/java: No such file or directory\n",
         "/x/bin/spark-class: line 71: /y/bin/java: No such file or directory"),
    ],
)  # fmt: skip
def test_of_the_log_of_a_start_the_cause_is_kept(log: str, says: str) -> None:
    """Not the warnings with which every start begins, nor the lines behind the cause."""
    assert cause_in_log(log) == says
