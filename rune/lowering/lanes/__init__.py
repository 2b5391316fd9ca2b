"""Vector lanes of processors: which loops run in them, how many there are, what is transposed."""
