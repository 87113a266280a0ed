"""`antecede ask`: questions of causality, in this process and on Spark."""
