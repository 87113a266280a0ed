"""The tour: record a group, order what it received, compare, explain."""
