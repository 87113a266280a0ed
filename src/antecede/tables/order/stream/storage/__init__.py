"""Storage of a stream's state: sorted segments, blobs and their index."""
