"""What operators ask of a store and do to it: statistics, administration, verification."""
