"""Steps that the tests of stats share."""

from __future__ import annotations

from storage import IsolationLevel

RC, RU = IsolationLevel
