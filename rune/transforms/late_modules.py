"""Modules loaded when they are first needed, so that `import rune` stays light (decision 0008)."""

from __future__ import annotations

from rune import locks

# `locks.late_module` imports under the lock of imports, without collections of garbage, and
# remembers the module, since most of these functions are called on the way to every compilation.

# The lowering: for the first program that is compiled.
compiler = locks.late_module("rune.lowering.stages")
# Command-line flags: for programs that parse them.
absl_flags = locks.late_module("absl.flags")
# Programs that watch for NaN and bounds: for the first such check.
watch = locks.late_module("rune.lowering.watch")
# Descriptions of calls for native code: for the first call that is made a second time.
native_calls = locks.late_module("rune.transforms.compile.native_calls")
# Native operators: for the first one that is applied often.
native_operators = locks.late_module("rune.backends.cpu.calls.operators")
# The checks of plans: for `check_stages`.
plan_check = locks.late_module("rune.backends.shared.plan_check")
# Executables that time their steps: for `profile`.
timing = locks.late_module("rune.backends.shared.timing")
# Winners of searches for schedules: for the first program that is compiled.
winners = locks.late_module("rune.transforms.tuning.winners")
# The log: for the first trace while `log_compiles` is set.
compile_log = locks.late_module("rune.transforms.inspect.compile_log")
# The search for schedules: for the first program that is searched.
tune = locks.late_module("rune.transforms.tuning.tune")
