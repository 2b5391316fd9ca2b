"""The modules of profiles that load on first use, because `import rune` does not need them."""

from __future__ import annotations

from rune import locks

# The writer of files for Perfetto; loaded when a profile is first saved.
trace_file = locks.late_module("rune.profiling.trace_file")
# Tables and timelines; loaded when a notebook first shows a profile.
view = locks.late_module("rune.profiling.view")
