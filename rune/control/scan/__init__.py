"""scan, map and associative_scan: functions applied along the rows of arrays."""
