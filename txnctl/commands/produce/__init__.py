"""`txnctl produce`: append messages to a topic."""
