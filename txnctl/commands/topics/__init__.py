"""`txnctl topics`: create, inspect and delete topics."""
