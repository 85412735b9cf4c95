"""`txnctl tables`: keys and values."""
