"""The words of a job: what native code reads of a plan's call, and where.

A job is its head, then an entry for each word of its keys, the least significant first, then one
for each result.
"""

from __future__ import annotations

DIGIT = 8  # bits by which words are moved at once: a counter for each value, which the cache holds
FEW = 96  # words that are compared all with all
PADDING = 16  # words after an array of words: those of two of the longest vectors
TAKES = (1, 2, 4, 8, 16)  # bytes of elements

# count: words of a row; width: elements of a row of results; room: words that `least` puts aside,
# 0 to sort all; sample: words that give the first bound, or 0; memory: of the first share of rows,
# others lie `apart` bytes after each other; length: bytes of the words, in front of the counters;
# chunk: rows of a share.
JOB = {
    "count": "i64",
    "width": "i64",
    "room": "i64",
    "sample": "i64",
    "memory": "ptr",
    "apart": "i64",
    "length": "i64",
    "chunk": "i64",
    "keys": "i64",
    "takes": "i64",
    "watch": "ptr",
}
HEAD = len(JOB)
KEY = {"function": "ptr", "source": "ptr", "row_bytes": "i64"}
TAKE = {"function": "ptr", "source": "ptr", "source_bytes": "i64", "target": "ptr", "target_bytes": "i64"}
