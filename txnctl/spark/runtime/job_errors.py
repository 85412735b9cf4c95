"""What Spark raises, as the errors of txnctl.

An error of ours that is raised in a Python process of Spark's comes back as text: its traceback, with the hint as a
note, inside a Java exception. Whoever typed a command is to read that one error and not the trace. What Spark itself
complains of, a missing file, a column that is not there, keeps its first sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import ALL, AlreadyExists, BadInput, BadLine, InvalidValue, TxnctlError

BAD_ROW = "txnctl-bad-row "
"""Begins the message of a `raise_error` in a transform; JSON of the row follows: file, row or record, problem."""

_RAISED = re.compile(r"^storage\.errors\.(\w+): (.*)\n?(.*)$", re.MULTILINE)
_NO_HINT = re.compile(r"\s|at |Traceback|During|The above|$")
_CONDITION = re.compile(r"\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_BY_NAME = {each.__name__: each for each in ALL.values()}
_MISSING = frozenset({"PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST"})
_TEXT_MAX = 400


@contextmanager
def told_as_ours() -> Iterator[None]:
    """Raise what Spark raises in the block as an error of txnctl.

    Raises:
        TxnctlError: of the kind that was raised within Spark; BadInput and its like for what Spark itself refuses.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise as_error(error) from error


def as_error(error: BaseException) -> TxnctlError:
    """The error that an exception of Spark's stands for."""
    text = _whole_text(error)
    raised = list(_RAISED.finditer(text))
    if raised:
        kind, message, next_line = raised[-1].groups()
        return _BY_NAME.get(kind, TxnctlError)(
            message, hint=None if _NO_HINT.match(next_line) else next_line.strip()
        )
    if BAD_ROW in text:
        return _bad_row(text)
    condition = getattr(error, "getCondition", lambda: None)() or ""
    sentence = first_sentence(text)
    if condition in _MISSING:
        return InvalidValue(sentence)
    if condition == "PATH_ALREADY_EXISTS":
        return AlreadyExists(sentence)
    if type(error).__name__ in ("AnalysisException", "ParseException", "IllegalArgumentException"):
        return BadInput(sentence)
    return TxnctlError(f"the Spark job failed: {sentence}", hint="--debug shows all that Spark says of it.")


def first_sentence(text: str) -> str:
    """What a message of Spark's says, without its condition, its query plan and its stack."""
    lines = [line.strip() for line in text.strip().splitlines()]
    said = next((line for line in lines if line and not line.startswith("at ")), "it said nothing")
    return _STATE.sub("", _CONDITION.sub("", said))[:_TEXT_MAX].rstrip(" .;")


class BadRow(BadLine):
    """A row of the input that cannot be a message.

    Attributes:
        file: where it stands.
        row: its number in the file, from 1 on; None where only its text is known.
        record: its text; None where its number is known.
        problem: what is wrong with it.
    """

    def __init__(self, file: str, row: int | None, record: str | None, problem: str) -> None:
        file = file.removeprefix("file://").removeprefix("file:")
        place = f"{file}: row {row:,}" if row is not None else f"{file}: the row {(record or '')[:80]!r}"
        super().__init__(
            f"{place}: {problem}", hint="--on-error skip leaves such rows out.", path=file, row=row
        )
        self.file = file
        self.row = row
        self.record = record
        self.problem = problem


def _bad_row(text: str) -> BadRow:
    start = text.index(BAD_ROW) + len(BAD_ROW)
    found, _ = json.JSONDecoder().raw_decode(text, start)
    return BadRow(found["file"], found.get("row"), found.get("record"), found["problem"])


def _whole_text(error: BaseException) -> str:
    """The message of an exception and of all that caused it, Java's among them."""
    java = getattr(error, "java_exception", None)
    texts = [str(error)]
    depth = 0
    while java is not None and depth < 20:
        texts.append(str(java.getMessage()))
        java, depth = java.getCause(), depth + 1
    return "\n".join(texts)
