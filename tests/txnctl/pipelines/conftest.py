"""Fixtures of the tests in this directory."""

from tests.txnctl.spark_stores import path, store

__all__ = ["path", "store"]
