"""Write requirements.lock: the versions of constraints.txt with the SHA-256 of each file that pip would take.

`make lock` asks pip, per Python and platform of `PYTHONS` and `PLATFORMS`, which file of each version pip would install,
and takes the hash from pip's report; a few files are downloaded, as PySpark comes as source only. Of what txnctl itself
needs the source distributions are locked as well. The index is the one that pip is configured to use; no address of a
file is written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
LOCK = ROOT / "requirements.lock"

PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = tuple(
    [f"{name}_{machine}" for name in names]
    for names in (("manylinux_2_28", "manylinux_2_17", "manylinux2014"), ("musllinux_1_2", "musllinux_1_1"))
    for machine in ("x86_64", "aarch64")
)
"""Linux with glibc and with musl: tags of wheels, the newest first."""

HEAD = """\
# The versions of constraints.txt with the SHA-256 of their files. Made by `make lock`; do not edit.
# For CPython 3.11, 3.12 and 3.13 on Linux, x86-64 and aarch64, glibc and musl: wheels, and the source where there is
# no wheel; of the first section the sources as well.
# Everything, the parts for Spark and development included:
#   pip install --require-hashes -r requirements.lock
#   pip install --no-deps --no-build-isolation .
"""

Hashes = dict[str, set[str]]


def sections() -> list[tuple[str, list[str]]]:
    """Return the headings of constraints.txt, each with its lines `name==version`."""
    found: list[tuple[str, list[str]]] = []
    for block in CONSTRAINTS.read_text().split("\n\n")[1:]:
        heading, *pins = block.strip().splitlines()
        found.append((heading, pins))
    return found


def hashes_of(pins: list[str], *options: str) -> Hashes:
    """Return the hash of the file of each pin that pip would install with these options, by name."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.json")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--no-deps",
            "-q",
        ]
        target = ["--target", directory, "--report", str(report)]
        subprocess.run([*command, *target, *options, *pins], check=True)
        installed = json.loads(report.read_text())["install"]
    return {
        canonicalize_name(each["metadata"]["name"]): {
            each["download_info"]["archive_info"]["hashes"]["sha256"]
        }
        for each in installed
    }


def all_hashes() -> Hashes:
    """Return the hashes of every file for the Pythons and platforms, by name."""
    everything = [pin for _, pins in sections() for pin in pins]
    hashes: Hashes = defaultdict(set)
    for python in PYTHONS:
        for tags in PLATFORMS:
            platform = [word for tag in tags for word in ("--platform", tag)]
            found = hashes_of(everything, "--implementation", "cp", "--python-version", python, *platform)
            for name, some in found.items():
                hashes[name] |= some
    needed = sections()[0][1]
    names = ",".join(pin.partition("==")[0] for pin in needed)
    for name, some in hashes_of(needed, "--no-binary", names).items():
        hashes[name] |= some
    return hashes


def locked(hashes: Hashes) -> str:
    """Return the text of the lock."""
    parts = [HEAD]
    for heading, pins in sections():
        lines = [heading]
        for pin in pins:
            values = sorted(hashes[pin.partition("==")[0]])
            lines.append(" \\\n".join([pin, *[f"    --hash=sha256:{value}" for value in values]]))
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    LOCK.write_text(locked(all_hashes()))
