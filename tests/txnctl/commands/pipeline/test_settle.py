"""`txnctl pipeline settle`: one job reads a subscription."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from storage import Store
from tests.waiting import wait_for
from txnctl.commands.pipeline.settle import SettleResult, _sentence
from txnctl.spark.source import stream_hold

PATIENCE_S = 120.0


@pytest.mark.needs_program("java")
def test_a_second_job_is_refused_and_a_killed_one_started_again(
    run: Any, start: Callable[..., subprocess.Popen[bytes]], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second names the first, before it starts a JVM; after SIGKILL of the first a third settles the rest."""
    words = ("pipeline", "settle", "requests", "--table", "accounts")
    with Store.open(path) as store, store.create_producer("requests", connected=False) as producer:
        producer.send(b'{"delta": "1.50"}', key="B1")
        with start(*words) as first:
            accounts = store.table("accounts")
            wait_for(
                lambda: first.poll() is not None or accounts.get(b"B1") == b"1.50",
                "one is settled",
                PATIENCE_S,
            )
            assert first.poll() is None, first.stderr.read()
            with monkeypatch.context() as patched:
                patched.setattr(stream_hold, "PATIENCE_S", 0.2)
                patched.setenv("JAVA_HOME", "/nowhere")
                refused = run(*words, "--once", "-o", "json")
            assert (refused.status, refused.error["code"]) == (4, "subscription-busy")
            assert "subscription settle-accounts of requests is read already, by spark-driver-" in refused.err
            assert first.poll() is None
            first.kill()
        producer.send(b'{"delta": "-1.00"}', key="B1")
        with start(*words, "--once", "-o", "json") as third:
            out, said = third.communicate(timeout=PATIENCE_S)
        assert third.returncode == 0, said.decode()
        assert json.loads(out)["requests"] == 1
        assert store.table("accounts").get(b"B1") == b"0.50"


def test_messages_that_were_left_out_are_told() -> None:
    """In the sentence for people too."""
    row = SettleResult("persistent://public/default/requests", "accounts", 1, 5, 2, 3, None, "local", 1000)
    assert "; left out 3 messages that are no requests." in _sentence(row)
    assert "; left out 1 message that is no request." in _sentence(row._replace(skipped=1))
    assert "left out" not in _sentence(row._replace(skipped=0))
