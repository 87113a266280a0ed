"""What carries every study out: runs, engines, results kept, findings."""
