"""Steps that the tests of cli share."""

from __future__ import annotations

from txnctl.output.field import Field

FIELDS = (Field("name", "text", "A name."),)
