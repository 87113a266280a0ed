"""Does the checker notice? Protocols with one change, each judged."""
