"""Placement: measured speeds of devices, predicted times of programs, and the fastest mesh.

curves.py    seconds for an amount of work      records.py     the measurements of devices
measure.py   the programs that measure them     storage.py     on disk, once for each machine
predict.py   the time of a program on a mesh    plans.py       the fastest mesh and specs
search.py    the meshes and specs that are tried
kernel_records.py  device properties for the cost of kernels
"""
