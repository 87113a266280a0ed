"""What commands write: a file, a folder of parts, the bad rows beside it; whole or not at all."""
