"""`antecede order`: in this process, and on Spark."""
