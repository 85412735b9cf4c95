"""The environment variables of txnctl, for the man page and docs/CLI.md."""

from __future__ import annotations

VARIABLES = {
    "TXNCTL_STORE": "Stands for `--store`; a URL may have a password here, which is shown nowhere. Empty is unset.",
    "TXNCTL_OUTPUT": "Stands for `-o`, but for `check`. A command that lacks that format uses its own default. "
    "This and the next ones are refused where set but empty, as an empty option is: "
    "`export NAME=$(command)` does not fail with its command.",
    "TXNCTL_LOCK_TIMEOUT": "Stands for `--lock-timeout`.",
    "TXNCTL_TXN": "Stands for `--txn`, and for the id that `transactions commit` and `abort` take.",
    "TXNCTL_RETRIES": "Set by `transactions run --retries` for its command: further tries that may follow.",
    "TXNCTL_SESSION": "Stands for `--session`, on the topic of that session only.",
    "XDG_DATA_HOME": "The default store is `txnctl/store` in it; without it in `~/.local/share`; without a home none.",
    "NO_COLOR": "No colours, if set to anything.",
    "TERM": "`dumb` means no colours and no progress line.",
}
