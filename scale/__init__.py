"""The proof that Spark works beyond one machine: `make scale`, or `python -m scale --help`."""
