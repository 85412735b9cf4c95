"""D2: the memory of a process after a long scan."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks import command
from benchmarks.bench import Bench
from benchmarks.contract import targets_of
from benchmarks.engine import TOPIC, Engine
from benchmarks.payload import Payload
from benchmarks.report import Comparison

_BATCH = 1000
_MESSAGE_BYTES = 1024

# RssAnon, not VmRSS: VmRSS includes LMDB's mapped pages, which the kernel can take back.
# The peak is the largest sample, taken every 64 batches while a decoded batch is in memory.
_SCAN = f"""
import json, sys
from storage import EARLIEST, Store
def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))
imported = peak = anonymous()
scanned = 0
with Store.open(sys.argv[1], read_only=True) as store:
    with store.reader({TOPIC!r}, start=EARLIEST) as reader:
        for number, entry in enumerate(reader.entries()):
            values = entry.values
            scanned += sum(map(len, values))
            if number % 64 == 0:
                peak = max(peak, anonymous())
print(json.dumps({{"importedBytes": imported, "peakBytes": peak, "scannedBytes": scanned}}))
"""


def scan_memory(bench: Bench) -> Iterator[Comparison]:
    """D2. In a separate process; the judged figure is the peak above the memory after the import."""
    [target] = targets_of("D2")
    payload = Payload(_BATCH, _MESSAGE_BYTES)
    batches = max(1, bench.sizes.memory_scan_bytes // (_BATCH * _MESSAGE_BYTES))
    with bench.scratch() as directory:
        store = directory / "store"
        engine = Engine(store)
        for _ in range(batches):
            engine.append(payload.batch())
        engine.close()
        done = subprocess.run(
            [sys.executable, "-c", _SCAN, str(store)],
            env=command.environment(store),
            stdout=subprocess.PIPE,
            check=True,
        )
    seen = json.loads(done.stdout)
    assert seen["scannedBytes"] == batches * _BATCH * _MESSAGE_BYTES, seen
    yield Comparison(target, (seen["peakBytes"] - seen["importedBytes"]) / (1 << 20), details=seen)
