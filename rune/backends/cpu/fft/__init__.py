"""Fourier transforms along one axis in LLVM IR, many lines side by side in vector lanes.

forms          how the lines of an array come into lanes    stages     one stage of all lines
butterflies    transforms of a few elements, in registers   lines      lines to lanes and back
tables         roots of unity                               library    routines, on demand

For eager calls, by routines that serve all lengths:

rows     complex rows         reals     real rows of even length
columns  other axes           arrays    whole arrays, step by step
"""
