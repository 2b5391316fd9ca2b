"""`python -m rune.ops` prints the primitive × rule matrix."""

from rune.ops import LIBRARY, PRIMITIVES
from rune.ops.table import rule_matrix

if __name__ == "__main__":
    print(rule_matrix((*PRIMITIVES, *LIBRARY)))
