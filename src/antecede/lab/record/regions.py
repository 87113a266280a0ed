"""Regions of the recorder with emulated delays between them.

The one-way delay is the great-circle distance at two thirds of the speed of light, half as much
again for the route, plus log-normal jitter for queues. Clocks are off by a constant, as after a
coarse NTP synchronization. The recorder prints that delays are emulated.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

EARTH_RADIUS_KM = 6371.0
FIBRE_KM_PER_MS = 200.0
ROUTE_FACTOR = 1.5
JITTER_MEDIAN_MS = 12.0
JITTER_SIGMA = 1.1
MAX_JITTER_MS = 500.0  # bound for orders by clocks; one copy in 3,000 reaches it
CLOCK_OFFSET_MS = 60.0


class Region(NamedTuple):
    """Name of a region, with latitude and longitude in degrees."""

    name: str
    latitude: float
    longitude: float


REGIONS = (
    Region("frankfurt", 50.1, 8.7),
    Region("virginia", 38.9, -77.4),
    Region("oregon", 45.8, -119.7),
    Region("saopaulo", -23.5, -46.6),
    Region("mumbai", 19.1, 72.9),
    Region("singapore", 1.3, 103.8),
    Region("tokyo", 35.7, 139.7),
    Region("sydney", -33.9, 151.2),
)


def compute_base_delay_ms(a: Region, b: Region) -> float:
    """Return the one-way delay of an empty route between two regions, in milliseconds."""
    lat_a, lat_b = math.radians(a.latitude), math.radians(b.latitude)
    half_lat = math.sin((lat_b - lat_a) / 2)
    half_lon = math.sin(math.radians(b.longitude - a.longitude) / 2)
    chord = half_lat**2 + math.cos(lat_a) * math.cos(lat_b) * half_lon**2
    distance_km = 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(chord))
    return distance_km / FIBRE_KM_PER_MS * ROUTE_FACTOR


def draw_delay_s(a: Region, b: Region, rng: random.Random) -> float:
    """Draw the delay of one copy of a message, in seconds."""
    jitter_ms = min(JITTER_MEDIAN_MS * math.exp(rng.gauss(0.0, JITTER_SIGMA)), MAX_JITTER_MS)
    return (compute_base_delay_ms(a, b) + jitter_ms) / 1000.0


def draw_clock_offset_ns(rng: random.Random) -> int:
    """Draw the offset of a member's clock, in nanoseconds."""
    return round(rng.uniform(-CLOCK_OFFSET_MS, CLOCK_OFFSET_MS) * 1e6)
