"""The simulator of group protocols: scenarios, the readable engine, the compiled engines."""
