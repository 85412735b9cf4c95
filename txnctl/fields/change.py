"""Fields of every change by an operator."""

from __future__ import annotations

from txnctl.output.field import Field

DRY_RUN = Field("dryRun", "boolean", "Whether nothing was changed.")
