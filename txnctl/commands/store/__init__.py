"""`txnctl store`: a store as a whole."""
