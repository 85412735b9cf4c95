"""The sentence in a text of Spark that says why: of an exception with its causes, and of the log of a start.

Spark's texts are a frame around the cause: the stage and the task that failed, the Python worker that raised, warnings
about Java's modules. The functions are pure, and know the frames.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

SENTENCE_MAX: Final = 400

_CONDITION = re.compile(r"\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_QUERY = re.compile(r"^Query \[id = [^\]]*\] terminated with exception: ")
_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((\S+) executor (\S+)\): *", re.DOTALL)
_PYTHON = re.compile(r"Traceback \(most recent call last\):$", re.MULTILINE)
_RAISED = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Z]\w*)(?:: (.*))?$")
_JAVA_NAME = re.compile(r"^(?:Caused by: |Exception in thread \"[^\"]*\" )?(?:[a-z]\w*\.)+([A-Z]\w*): *")
_NO_MODULE = re.compile(r"ModuleNotFoundError: (?:No module named|import of) '?([\w.]+)")
_PYTHON_FILE = re.compile(r'File "(/[^"]+?)/(?:lib/python[^/"]*/)?site-packages/')
_NOISE = (
    "WARNING:",
    "NOTE:",
    "Picked up ",
    "Using Spark's",
    "Setting default log level",
    "To adjust logging level",
    ":: ",
)
_LOGGED = re.compile(r"^\d\d(?:\d\d)?[/-]\d\d[/-]\d\d[ T][\d:.,]+ (WARN|INFO|DEBUG|ERROR|FATAL) [^:]+: *")
_CAUSES = (
    "Error: ",
    "Exception in thread ",
    "Caused by: ",
    "Invalid ",
    "Unrecognized ",
    "Unsupported ",
    "Conflicting ",
    "Could not ",
    "error: ",
    "Error occurred during initialization of VM",
)


class FailedTask(NamedTuple):
    """The task that a failed stage names.

    Attributes:
        host: where it ran.
        executor: `driver` in a local session.
    """

    host: str
    executor: str

    @property
    def is_remote(self) -> bool:
        """Whether an executor ran the task, and not the process of the driver."""
        return self.executor != "driver"


def failed_task(text: str) -> FailedTask | None:
    """The task of the last failure in a text; None where the text names none."""
    tasks = list(_TASK.finditer(text))
    return FailedTask(*tasks[-1].groups()) if tasks else None


def missing_module(text: str) -> tuple[str, str | None] | None:
    """A module that a Python process of Spark did not find, and the environment of that Python, if the trace has it."""
    match = _NO_MODULE.search(text)
    if match is None:
        return None
    python = _PYTHON_FILE.search(text)
    return match[1].split(".")[0], python[1] if python else None


def cause(text: str) -> str:
    """Return the sentence that says why: of the last traceback of Python, of the failed task, or the first one."""
    raised = _last_raised(text)
    if raised is not None:
        return raised[:SENTENCE_MAX]
    tasks = list(_TASK.finditer(text))
    return first_sentence(text[tasks[-1].end() :] if tasks else text)


def first_sentence(text: str) -> str:
    """Return the first sentence of Spark's message, without condition, class of Java, query, plan and stack."""
    lines = [line.strip() for line in text.strip().splitlines()]
    sentence = next((line for line in lines if line and not line.startswith("at ")), "no message")
    sentence = _QUERY.sub("", _CONDITION.sub("", _without_class(sentence)))
    return _STATE.sub("", sentence)[:SENTENCE_MAX].rstrip(" .;")


def _without_class(line: str) -> str:
    """Return a line of Java without the name of the exception; the name alone where there is no message."""
    named = _JAVA_NAME.match(line)
    if named is None:
        return line
    rest = line[named.end() :].strip()
    return f"{named[1]}: {rest}" if named[1].endswith("Error") and rest else rest or named[1]


def _last_raised(text: str) -> str | None:
    """Return the exception at the end of the last traceback of Python: `ValueError: no number`."""
    for start in reversed([match.end() for match in _PYTHON.finditer(text)]):
        for line in text[start:].splitlines()[1:]:
            if line[:1].isspace() or not line:
                continue
            raised = _RAISED.match(line.strip())
            if raised is not None:
                return f"{raised[1]}: {raised[2]}" if raised[2] else raised[1]
            break
    return None


def cause_in_log(log: str) -> str:
    """Return the line of a log of a failed start that says why: not the warnings before it, nor the stack behind."""
    lines = [_LOGGED.sub("", line).strip() for line in log.splitlines() if line.strip()]
    relevant = [line for line in lines if not line.startswith((*_NOISE, "at ", "... ", "Run with --help"))]
    causes = [
        number for number, line in enumerate(relevant) if line.startswith(_CAUSES) or _JAVA_NAME.match(line)
    ]
    if not causes:
        return relevant[-1][:SENTENCE_MAX] if relevant else "no output"
    line = relevant[causes[0]]
    if line.startswith("Error occurred during") and causes[0] + 1 < len(relevant):
        line = relevant[causes[0] + 1]
    return first_sentence(line.removeprefix("Error: ").removeprefix("error: "))
