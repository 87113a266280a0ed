"""What drives a node: a network in memory with a clock of its own, TCP with TLS."""
