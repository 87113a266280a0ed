"""Programs that are peers of a live group; each runs as a test."""
