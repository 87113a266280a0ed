"""`antecede meter`: in this process, and on Spark."""
