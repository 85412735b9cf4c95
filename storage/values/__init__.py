"""Values: positions, transaction ids and states, names, timestamps, receipts. A value never opens a store."""
