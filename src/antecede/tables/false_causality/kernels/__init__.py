"""The meter, compiled: pairs that rules order, order without need and miss."""
