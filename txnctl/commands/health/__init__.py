"""`txnctl status`, `doctor` and `check`: the health of a store."""
