"""Commands that read traces and tables."""
