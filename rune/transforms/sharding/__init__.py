"""Programs on several devices: shard_map, what its equations mean, and how a mesh runs them.

shard_map.py   the transformation              primitive.py   its equations, with their rules
blocks.py      which block is whose            run.py         a program on all devices of a mesh
workers.py     a thread for each device
"""
