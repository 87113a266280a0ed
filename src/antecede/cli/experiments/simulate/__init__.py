"""`antecede simulate`: runs of a simulation config, and their report."""
