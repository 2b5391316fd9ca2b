"""Fourier transforms along one axis in LLVM IR, with one line per vector lane.

forms          how lines of an array are moved to lanes    stages     one stage of all lines
butterflies    transforms of a few elements, in registers  lines      copies to lanes and back
tables         roots of unity                              library    routines, on demand
rows           complex rows of any length, in eager calls
"""
