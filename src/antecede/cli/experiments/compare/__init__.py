"""`antecede compare`: configs, measures and table."""
