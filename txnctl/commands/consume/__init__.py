"""`txnctl consume`: read a topic, or receive the messages of a subscription."""
