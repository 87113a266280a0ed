"""Commands for live groups."""
