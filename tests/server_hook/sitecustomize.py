"""Run by each Python that a test on a server starts, before its program: see `tests/server_stores.py`."""

import importlib.util
import os
import pathlib


def _install() -> None:
    path = pathlib.Path(__file__).parents[1] / "server_stores.py"
    spec = importlib.util.spec_from_file_location("server_stores_of_tests", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install()


if "TXNCTL_TEST_SERVER" in os.environ:
    _install()
