"""Redrive that is killed: no dead letter is lost, and none goes back twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from storage import EARLIEST, Store, SubscriptionType
from tests.waiting import moment_of_chance

pytestmark = [pytest.mark.slow, pytest.mark.kills]

MESSAGES = 1200

PROGRAM = """
import sys
from storage import Store
from storage.subscription import redrive
redrive.REDRIVE_STEP_MESSAGES = 7
store = Store.open(sys.argv[1])
print("begins", flush=True)
store.admin.subscriptions.redrive_dead_letters("t", "a")
"""


@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE])
def test_a_redrive_that_is_killed_goes_on_where_it_was(path: str, type_: SubscriptionType):
    """Killed at any moment, again and again: in the end every letter has gone back exactly once."""
    random = Random(7)
    with Store.open(path) as store:
        with store.create_producer("t") as producer:
            producer.send_batch([b"%d" % number for number in range(MESSAGES // 2)])
            for number in range(MESSAGES // 2, MESSAGES):
                producer.send(b"%d" % number)
        with store.subscribe(
            "t", "a", initial_position=EARLIEST, max_redeliver_count=0, subscription_type=type_,
            receiver_queue_size=MESSAGES,
        ) as consumer:  # fmt: skip
            ids = [message.message_id for message in consumer.receive_batch(MESSAGES, timeout=0)]
            store.admin.acknowledgements.negative_acknowledge_messages("t", "a", ids, delay=0)
            assert not consumer.receive_batch(1, timeout=0)
    killed, received = 0, Counter[bytes]()
    while killed < 6:
        command = [sys.executable, "-c", PROGRAM, path]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begins\n"
            moment_of_chance(random, 0, 0.05)
            process.send_signal(signal.SIGKILL)
        killed += 1
        with Store.open(path) as store:
            assert store.maintenance.verify_store() == []
            with store.subscribe("t", "a", receiver_queue_size=MESSAGES) as consumer:
                batch = list(consumer.receive_batch(MESSAGES, timeout=0))
                received.update(message.value or b"" for message in batch)
                if batch:
                    consumer.acknowledge(batch)
    with Store.open(path) as store:
        store.admin.subscriptions.redrive_dead_letters("t", "a")
        with store.subscribe("t", "a", receiver_queue_size=MESSAGES) as consumer:
            batch = list(consumer.receive_batch(MESSAGES, timeout=0))
            received.update(message.value or b"" for message in batch)
        assert store.maintenance.verify_store() == []
    assert len(received) == MESSAGES
    assert set(received.values()) == {1}
