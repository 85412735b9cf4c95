"""Count the statements of a server and the rows that they return: work of a store on a server, without a clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from storage.disk.postgres.session import Session


class Statements:
    """The statements of this process's sessions in one stretch of a test.

    Attributes:
        number: statements, of a commit too.
        rows: rows that they returned.
    """

    def __init__(self) -> None:
        self.number = self.rows = 0


@contextmanager
def counted_statements() -> Iterator[Statements]:
    """Count the statements within the block."""
    statements, run_steps = Statements(), Session.run_steps

    def counting(session: Session, steps: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
        results = run_steps(session, steps, *args, **kwargs)
        statements.number += len(steps)
        statements.rows += sum(map(len, results))
        return results

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "run_steps", counting)
        yield statements
