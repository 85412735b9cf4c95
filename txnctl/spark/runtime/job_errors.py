"""Translation of Spark's exceptions into errors of txnctl.

A `TxnctlError` raised in a Python process of Spark comes back as text: its traceback, with the hint as a note, inside a
Java exception. The command shows that one error and not the trace. Errors of Spark itself, such as a missing file or
column, keep their first sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import ALL, AlreadyExists, BadInput, BadLine, InvalidValue, TxnctlError
from txnctl.output.shell import name_in
from txnctl.spark.file_systems import without_secrets

BAD_ROW = "txnctl-bad-row "
"""Prefix of the message of a `raise_error` in a transform; JSON follows: file, row or record, unit, problem."""

_RAISED = re.compile(r"^storage\.errors\.(\w+): (.*)\n?(.*)$", re.MULTILINE)
_NO_HINT = re.compile(r"\s|at |Traceback|During|The above|$")
_CONDITION = re.compile(r"\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_NO_FILE_SYSTEM = re.compile(
    r'No FileSystem for scheme "(\w+)"|Class org\.apache\.hadoop\.fs\.(\w+)\.\w+ not found'
)
_BY_NAME = {kind.__name__: kind for kind in ALL.values()}
_MISSING = frozenset({"PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST"})
SENTENCE_MAX = 400


@contextmanager
def as_txnctl_errors() -> Iterator[None]:
    """Raise Spark's exceptions in the block as errors of txnctl.

    Raises:
        TxnctlError: the error that was raised within Spark; BadInput and its subclasses for a refusal by Spark itself.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise as_error(error) from error


def as_error(error: BaseException) -> TxnctlError:
    """Translate an exception of Spark."""
    text = _whole_text(error)
    raised = list(_RAISED.finditer(text))
    if raised:
        kind, message, next_line = raised[-1].groups()
        return _BY_NAME.get(kind, TxnctlError)(
            message, hint=None if _NO_HINT.match(next_line) else name_in(next_line.strip())
        )
    if BAD_ROW in text:
        return _bad_row(text)
    no_file_system = _NO_FILE_SYSTEM.search(text)
    if no_file_system:
        return InvalidValue(
            f"this Spark has no file system for {no_file_system[1] or no_file_system[2]}://",
            hint="Spark's own readers and checkpoints need Hadoop's connector for it: docs/SCALE.md, S3.",
        )
    condition = getattr(error, "getCondition", lambda: None)() or ""
    sentence = first_sentence(text)
    if condition in _MISSING:
        return InvalidValue(sentence)
    if condition == "PATH_ALREADY_EXISTS":
        return AlreadyExists(sentence)
    if type(error).__name__ in ("AnalysisException", "ParseException", "IllegalArgumentException"):
        return BadInput(sentence)
    return TxnctlError(f"the Spark job failed: {sentence}", hint="--debug shows the whole output of Spark.")


def first_sentence(text: str) -> str:
    """Return the first sentence of Spark's message, without condition, query plan and stack."""
    lines = [line.strip() for line in text.strip().splitlines()]
    sentence = next((line for line in lines if line and not line.startswith("at ")), "no message")
    return _STATE.sub("", _CONDITION.sub("", sentence))[:SENTENCE_MAX].rstrip(" .;")


class BadRow(BadLine):
    """A row of the input that cannot be a message.

    Attributes:
        file: path of the file.
        row: its number in the file, from 1 on; None where only the text is known.
        record: its text; None where the number is known.
        problem: the reason.
        unit: what the number counts: lines, or rows of a file without lines.
    """

    def __init__(
        self, file: str, row: int | None, record: str | None, problem: str, unit: str = "line"
    ) -> None:
        file = file.removeprefix("file://").removeprefix("file:")
        shown = without_secrets(file)
        location = (
            f"{shown}: {unit} {row:,}" if row is not None else f"{shown}: the {unit} {(record or '')[:80]!r}"
        )
        super().__init__(
            f"{location}: {problem}", hint="--on-error skip leaves such rows out.", path=shown, **{unit: row}
        )
        self.file = file
        self.row = row
        self.record = record
        self.problem = problem
        self.unit = unit


def _bad_row(text: str) -> BadRow:
    start = text.index(BAD_ROW) + len(BAD_ROW)
    details, _ = json.JSONDecoder().raw_decode(text, start)
    return BadRow(
        details["file"],
        details.get("row"),
        details.get("record"),
        details["problem"],
        details.get("unit", "line"),
    )


def _whole_text(error: BaseException) -> str:
    """Join the messages of an exception and of its causes, Java's included."""
    java = getattr(error, "java_exception", None)
    texts = [str(error)]
    depth = 0
    while java is not None and depth < 20:
        texts.append(str(java.getMessage()))
        java, depth = java.getCause(), depth + 1
    return "\n".join(texts)
