"""A row of output: values for JSON by the name of the field.

The fields of a command (`Field`) declare names and kinds; `txnctl.output.field.undeclared` finds a name without one.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
