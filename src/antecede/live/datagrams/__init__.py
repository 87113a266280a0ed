"""Live groups over datagrams, for orders that recover loss themselves: see docs/live/udp.md."""
