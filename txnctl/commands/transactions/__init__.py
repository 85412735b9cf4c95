"""`txnctl transactions`: begin, end and explain transactions."""
