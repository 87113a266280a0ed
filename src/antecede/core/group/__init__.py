"""`Group` and its parts: a protocol, names and bytes for builders (docs/design/group.md)."""
