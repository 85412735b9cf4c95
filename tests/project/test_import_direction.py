"""Imports point one way: txnctl to storage, and inside storage downwards."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_import_contract_of_pyproject_is_kept():
    """The contracts under [tool.importlinter] hold for the code as it is."""
    linter = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [linter, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_engine_runs_without_the_command_line():
    """`import storage`, with all that it loads when a store is opened, brings in neither click nor txnctl."""
    program = (
        "import sys, tempfile, os\n"
        "from storage import Store\n"
        "path = os.path.join(tempfile.mkdtemp(), 'store')\n"
        "Store.create(path)\n"
        "with Store.open(path) as store:\n"
        "    store.create_topic('t')\n"
        "    with store.create_producer('t') as producer:\n"
        "        producer.send(b'1')\n"
        "    assert store.reader('t').read_next().value == b'1'\n"
        "print(*sorted({'click', 'tabulate', 'txnctl', 'pyspark', 'pyarrow', 'pandas'} & set(sys.modules)))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []
