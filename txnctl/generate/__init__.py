"""Generators of man pages, docs/CLI.md and completion scripts from the command tree, which also gives `--help`.

`python -m txnctl.generate` writes the files; `--check` fails where a committed file is stale.
"""
