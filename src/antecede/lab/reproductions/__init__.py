"""The evaluations of the five sources as jobs on Spark."""
