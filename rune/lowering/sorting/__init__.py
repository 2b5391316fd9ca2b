"""Sorting on a device, by the digits of keys: few launches, whatever the length.

radix.py: the kernels, and the order that they make. expansions.py: `sort` and `top_k` by them.
"""
