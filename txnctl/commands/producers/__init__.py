"""`txnctl producers`: producers of topics, and leader election."""
