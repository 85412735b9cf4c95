"""Man pages, docs/CLI.md and the completion scripts, made from the command tree that also gives `--help`.

`python -m txnctl.generate` writes them, `--check` fails where a committed file is not what would be written.
"""
