"""`antecede audit`: in this process, and on Spark."""
