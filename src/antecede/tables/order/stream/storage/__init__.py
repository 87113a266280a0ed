"""Storage of a shard: named immutable blobs, tables of ids, indexes."""
