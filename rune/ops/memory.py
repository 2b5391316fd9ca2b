"""in_memory: a value that is stored, whatever it would cost to compute it again.

The expansion of a primitive says so where it knows better than a count of operations. For example,
a stage of a transform reads each number of the previous stage in several places, and every reader
would otherwise repeat the selection among that stage's results. Like the loops of repeat.py it
exists only while a program is lowered, so it has no derivative and no batch rule.
"""

from __future__ import annotations

from rune.core.lower import Convert
from rune.core.primitive import Primitive

# Lowered as a conversion that converts nothing; kernelize/stored.py keeps its results.
in_memory = Primitive("in_memory", "movement", lambda x: x, lambda x: x, lower=Convert())
