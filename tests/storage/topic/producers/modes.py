"""Access modes of producers, in Pulsar's words."""

SHARED, EXCLUSIVE = "Shared", "Exclusive"
WAITING, FENCING = "WaitForExclusive", "ExclusiveWithFencing"
MODES = [SHARED, EXCLUSIVE, WAITING, FENCING]
