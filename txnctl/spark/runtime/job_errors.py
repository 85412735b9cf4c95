"""Translation of Spark's exceptions into errors of txnctl: every job and every command passes here.

A `TxnctlError` raised in a Python process of Spark comes back as text: its traceback, with the hint as a note, inside a
Java exception. The command shows that one error and not the trace. A failure of Spark's own processes (no memory, a
killed process, a Python without a package) is named with its host and with the option that helps. Errors of Spark
itself, such as a missing file or column, keep the sentence that says why (`failure_text.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import (
    ALL,
    AlreadyExists,
    BadInput,
    InvalidValue,
    JobFailed,
    JvmDied,
    ProgramMissing,
    TxnctlError,
)
from txnctl.output.shell import name_in
from txnctl.spark.runtime.failure_text import cause, failed_task, missing_module
from txnctl.spark.runtime.task_host import ON_OTHER_HOSTS

_RAISED = re.compile(r"^storage\.errors\.(\w+): (.*)\n?(.*)$", re.MULTILINE)
_NO_HINT = re.compile(r"\s|at |Traceback|During|The above|details: |$")
_DETAILS = re.compile(r"details: (\{.*\})$", re.MULTILINE)
_NO_FILE_SYSTEM = re.compile(
    r'No FileSystem for scheme "(\w+)"|Class org\.apache\.hadoop\.fs\.(\w+)\.\w+ not found'
)
_BY_NAME = {kind.__name__: kind for kind in ALL.values()}
_MISSING = frozenset({"PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST"})
_REFUSED = frozenset({"AnalysisException", "ParseException", "IllegalArgumentException"})
DEBUG_HINT = "--debug shows the whole output of Spark."

_MEMORY = (
    (
        "java.lang.OutOfMemoryError",
        "the JVM of Spark ran out of memory",
        "Give it more: --conf spark.driver.memory=4g.",
    ),
    (
        "Python worker exited unexpectedly",
        "a Python process of Spark was killed or crashed, mostly for want of memory",
        "Run it again with fewer tasks at once, such as --master 'local[1]', or more memory.",
    ),
    (
        "ExecutorLostFailure",
        "an executor was lost: killed, mostly for want of memory, or its machine is gone",
        "Run it again; more memory for each: --conf spark.executor.memory=4g.",
    ),
)
"""Text of Spark, the sentence about it, and the hint. The innermost cause comes first."""


@contextmanager
def as_txnctl_errors() -> Iterator[None]:
    """Raise Spark's exceptions in the block as errors of txnctl.

    Raises:
        TxnctlError: the error that was raised within Spark; BadInput and its subclasses for a refusal by Spark itself;
            JobFailed for a failure of its processes.
    """
    try:
        yield
    except Exception as error:
        if not (is_of_spark(error) or _is_of_arrow(error)):
            raise
        raise as_error(error) from error


def is_of_spark(error: BaseException) -> bool:
    """Report whether an exception comes from Spark, or from the connection to its JVM."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return isinstance(error, (PySparkException, Py4JError))


def _is_of_arrow(error: BaseException) -> bool:
    """Report whether an exception is PyArrow's own, such as for the URI of a file system that it does not know."""
    return type(error).__module__.startswith("pyarrow.")


def as_error(error: BaseException) -> TxnctlError:
    """Translate an exception of Spark."""
    text = _whole_text(error)
    raised = list(_RAISED.finditer(text))
    if raised:
        kind, message, next_line = raised[-1].groups()
        details = _DETAILS.match(text, raised[-1].end() + 1) or _DETAILS.match(text, raised[-1].start(3))
        return _BY_NAME.get(kind, TxnctlError)(
            message,
            hint=None if _NO_HINT.match(next_line) else name_in(next_line.strip()),
            **(json.loads(details[1]) if details else {}),
        )
    no_file_system = _NO_FILE_SYSTEM.search(text)
    if no_file_system:
        return InvalidValue(
            f"this Spark has no file system for {no_file_system[1] or no_file_system[2]}://",
            hint="Spark's own readers and checkpoints need Hadoop's connector for it: docs/SCALE.md, S3.",
        )
    condition = getattr(error, "getCondition", lambda: None)() or ""
    if condition in _MISSING:
        return InvalidValue(cause(text))
    if condition == "PATH_ALREADY_EXISTS":
        return AlreadyExists(cause(text))
    failure = _of_processes(error, text)
    if failure is not None:
        return failure
    if type(error).__name__ in _REFUSED or _is_of_arrow(error):
        return BadInput(cause(text))
    return JobFailed(f"the Spark job failed: {cause(text)}{_place(text)}", hint=DEBUG_HINT)


def _of_processes(error: BaseException, text: str) -> TxnctlError | None:
    """The error about a process of Spark that is gone, without memory, or without a package; None for any other."""
    if type(error).__name__ == "Py4JNetworkError":
        return JvmDied(
            "the JVM of Spark is gone: it was killed, or ended by itself",
            hint="Nothing half-done is in the store: run the job again.",
        )
    missing = missing_module(text)
    if missing is not None:
        return _missing_package(*missing, _place(text))
    for words, sentence, hint in _MEMORY:
        if words in text:
            place = _place(text)
            advice = hint.replace(".driver.", ".executor.") if place else hint
            return JobFailed(f"{sentence}{place}", hint=f"Nothing half-done is in the store. {advice}")
    return None


def _missing_package(module: str, python: str | None, place: str) -> TxnctlError:
    """The error about a Python process of Spark that cannot import a module."""
    where = f" (in {python})" if python else ""
    return ProgramMissing(
        f"the Python of Spark{where} has no module {module}{place}",
        hint=ON_OTHER_HOSTS if place else f"PYSPARK_PYTHON names that Python. {ON_OTHER_HOSTS}",
        program=module,
    )


def _place(text: str) -> str:
    """Say on which host the failed task ran, if that was an executor's."""
    task = failed_task(text)
    return f", in a task on host {task.host}" if task is not None and task.is_remote else ""


def _whole_text(error: BaseException) -> str:
    """Join the messages of an exception and of its causes, Java's included."""
    java = getattr(error, "java_exception", None)
    texts = [str(error)]
    depth = 0
    while java is not None and depth < 20:
        texts.append(str(java.getMessage()))
        java, depth = java.getCause(), depth + 1
    return "\n".join(texts)
