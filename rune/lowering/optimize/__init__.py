"""Rewrites of kernel code, one file each, which keep all results.

Any sequence of them is correct; lowering/pipeline.py has the one that pays.
"""
