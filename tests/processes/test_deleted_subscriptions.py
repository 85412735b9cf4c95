"""The deletion of a subscription that is killed between its steps: later writes remove what is left."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.disk.schema import DELAYED, DELAYED_DUE, PURGES

pytestmark = pytest.mark.kills

PROGRAM = """
import os, signal, sys
from storage import Store, faults
from storage.subscription import subscription_purge
subscription_purge.PURGE_STEP_RECORDS = 4
left = int(sys.argv[2])
def kill():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
with Store.open(sys.argv[1]) as store:
    faults.arm(sys.argv[3], kill)
    store.admin.subscriptions.delete_subscription("t", "a")
"""


@pytest.mark.parametrize("point", ["environment.before_commit", "environment.after_commit"])
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_killed_deletion_leaves_a_sound_store(path: str, point: str, step: int) -> None:
    """With its name, or without: then nothing of it is met, and the next writes finish."""
    with Store.open(path) as store:
        with store.create_producer("t") as producer:
            for _ in range(8):
                producer.send_batch([b"x"], deliver_after=3600)
        store.subscribe(
            "t", "a", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        ).receive_batch(1, timeout=0)
    done = subprocess.run([sys.executable, "-c", PROGRAM, path, str(step), point], check=False)
    assert done.returncode == -signal.SIGKILL
    with Store.open(path) as store:
        assert store.maintenance.verify_store(full=True) == []
        has_name = bool(store.reports.list_subscriptions("t"))
        assert has_name == (step == 1 and point == "environment.before_commit")
        if has_name:
            store.admin.subscriptions.delete_subscription("t", "a")
        store.maintenance.collect_garbage()
        with store.connection.view() as view:
            assert view.count(DELAYED) == view.count(DELAYED_DUE) == view.count(PURGES) == 0
        assert store.maintenance.verify_store(full=True) == []
