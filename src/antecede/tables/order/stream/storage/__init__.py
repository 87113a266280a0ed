"""State of a shard in a store: named bytes, id tables, indexes."""
