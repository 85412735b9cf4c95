"""Fields of every change by an operator."""

from __future__ import annotations

from txnctl.output.field import Help

DRY_RUN = {"dry_run": Help("Whether nothing was changed.")}
