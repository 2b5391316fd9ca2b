"""Control flow: loops and branches that stay loops and branches.

    cond, switch            one of several functions          primitive `cond`
    scan, map               one row after the other           primitive `scan`
    while_loop, fori_loop   while a condition holds           primitives `while`, `while_linear`
    associative_scan        all prefixes, in few passes       no primitive of its own
    custom_linear_solve     x with A x = b, by any solver     primitive of the same name
    custom_root             x with f(x) = 0, by any solver    a custom_jvp

A function is traced into a program (tracing.py) whose carry keeps its type (carry_types.py). Rules
rewrite that program (loop_bodies.py, programs.py) and bind the primitive again.
docs/reverse-mode-of-while.md explains the reverse mode of while loops.
"""

from rune.control.branch.cond import cond, switch
from rune.control.implicit.linear_solve import custom_linear_solve
from rune.control.implicit.root import custom_root
from rune.control.scan.associative_scan import associative_scan
from rune.control.scan.scan import map, scan
from rune.control.sequential_vmap import sequential_vmap
from rune.control.text import parse_program
from rune.control.while_loop.checkpoints import Checkpoints, GrowingResiduals
from rune.control.while_loop.while_loop import fori_loop, while_loop

__all__ = ["Checkpoints", "GrowingResiduals", "associative_scan", "cond", "custom_linear_solve", "custom_root"]
__all__ += ["fori_loop", "map", "parse_program", "scan", "sequential_vmap", "switch", "while_loop"]
