"""Sorting on a device, by the digits of keys: few launches, whatever the length.

radix.py: words in order, and the kernels of processors. digits.py and groups.py: those of GPUs.
expansions.py: `sort` and `top_k` by them.
"""
