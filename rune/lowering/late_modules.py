"""Modules that few programs need, loaded on first use (decision 0008)."""

from __future__ import annotations

from rune import locks

# Steps that run entry by entry: loaded for the first program that calls a product.
bands = locks.late_module("rune.lowering.bands")
# The model of costs: loaded for the first prediction.
costs = locks.late_module("rune.lowering.costs")
# Kernels and plans as graphs: loaded for the first one that is drawn.
graphs = locks.late_module("rune.lowering.graphs")
# Loops of groups of threads: loaded for the first device that has groups.
groups = locks.late_module("rune.lowering.build.groups")
# Which schedules a kernel may have: loaded for the first schedule that is requested.
legal_schedules = locks.late_module("rune.lowering.build.legal")
# Loops of streams, such as attention: loaded for the first one that is built.
streams = locks.late_module("rune.lowering.build.streams")
# Checks of kernels: loaded for `check_stages`.
kernels_check = locks.late_module("rune.lowering.kernels_check")
# Checks of the types in a plan: loaded for `check_stages`.
plan_types = locks.late_module("rune.lowering.plan_types")
# Checks of the memory in a plan: loaded for `check_stages`.
plan_check = locks.late_module("rune.lowering.plan_check")
# Plans as text: loaded for the first one that is printed.
plan_text = locks.late_module("rune.lowering.plan_text")
# The parts of complex numbers and keys: loaded for the first program with one.
parts = locks.late_module("rune.lowering.legalize.parts")
# Narrow dtypes in those of a target: loaded for the first one that a target lacks.
narrow_storage = locks.late_module("rune.lowering.legalize.narrow_storage")
# Rules of devices in place of scatters: loaded for the first program with a scatter.
scatters = locks.late_module("rune.lowering.scatters")
# Sorts on a device: loaded for the first program with a sort.
sorts = locks.late_module("rune.lowering.sorting.sorts")
# Cholesky factors by groups of threads: loaded for the first device that has groups.
cholesky = locks.late_module("rune.lowering.factorisations.cholesky")
# Triangular solves by groups of threads, likewise.
triangular = locks.late_module("rune.lowering.factorisations.triangular")
# LU factors by groups of threads, likewise.
lu = locks.late_module("rune.lowering.factorisations.lu")
