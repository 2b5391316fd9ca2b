"""Vector lanes of processors: which loops run in them, and how; how cores share a grid.

choose    which loops              width       how many lanes there are
access    steps in memory          rounds      sums, masks and the end of a loop in lanes
division  what cores share         transposed  axes done in tiles
layout    all of this for a kernel, before it is rendered
"""
