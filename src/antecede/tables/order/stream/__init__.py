"""Causal order of a stream, without Spark: what a shard remembers, holds back and releases.

`shard.Shard` takes micro-batches and gives out rows; its state is many small immutable blobs
behind `blobs.Blobs`. Why this shape and what it costs: `docs/design/streaming.md`.
"""
