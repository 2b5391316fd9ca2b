"""Where a program should run: what devices can do, how long it takes there, and which mesh is best.

curves.py    seconds for an amount of work      records.py     what devices can do, measured
measure.py   measuring it                       storage.py     on disk, once for each machine
predict.py   the time of a program on a mesh    plans.py       the mesh and specs that are fastest
search.py    the meshes and specs that are tried
kernel_records.py  device properties for the cost of kernels
"""
