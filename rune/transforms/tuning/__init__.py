"""Schedules found by trying them: trials, the search, winners on disk, `rune.tune`."""
