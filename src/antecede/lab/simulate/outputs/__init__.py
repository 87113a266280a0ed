"""What a run gives: figures, violations, unnecessary waits, traces."""
