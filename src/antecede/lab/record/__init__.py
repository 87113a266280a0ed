"""The recorder: processes that talk over UDP, and the trace of what they received."""
