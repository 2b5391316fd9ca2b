"""scan, map and associative_scan: a function along the rows of arrays."""
