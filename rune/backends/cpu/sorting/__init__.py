"""Native code that sorts rows of a plan, in place of calls of NumPy.

keys.py has the order of elements as words, code.py the sort of words, and library.py the compiled
functions, which all programs share.
"""
