"""One module for each command. `txnctl topics peek` is topics/peek.py; group.py makes the group."""
