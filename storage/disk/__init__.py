"""One environment on disk: the only room that knows LMDB, and the only packing of bytes."""
