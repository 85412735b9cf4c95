"""Values: positions, transaction ids, names, points in time, receipts. No value opens a store."""
