"""Rewrites of kernel code, one file each: kernel code -> kernel code, the same results.

Any sequence of them is correct; lowering/pipeline.py has the one that pays.
"""
