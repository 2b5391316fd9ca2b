"""Checks that users switch on: NaN, infinity, indices out of bounds, keys used twice."""
