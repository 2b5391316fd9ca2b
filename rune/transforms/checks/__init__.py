"""Checks that are switched on: NaN, infinity, indices out of bounds, keys used twice."""
