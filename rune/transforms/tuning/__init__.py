"""Search for schedules by running them: trials, the search, winners on disk, `rune.tune`."""
