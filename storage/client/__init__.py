"""The objects that an application holds: producer, consumer, reader, table, transaction."""
