"""Fourier transforms along one axis in LLVM IR, with one line per vector lane.

forms          how lines of an array are moved to lanes    stages     one stage of all lines
butterflies    transforms of a few elements, in registers   lines      copies to lanes and back
tables         roots of unity                               library    routines, on demand

lengths        how a length is divided                     stage_lists stages for routines, as words
convolutions   large primes, and rows that do not split    pieces      functions by their names

For arrays as they lie in memory, by routines for all lengths, each with a module that writes it:

rows     complex rows         reals          real rows of even length
groups   many short rows      real_columns   real arrays along other axes
columns  other axes           twins          short rows, two in a vector
arrays   whole arrays         odd_rows       many real rows of odd length
"""
