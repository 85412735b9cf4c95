"""Cost curves: the time of each operation beside the size of the store, in turns on stores of all sizes."""
