"""Changes of membership: newcomers, departures and lost messages."""
