"""while_loop and fori_loop: a function applied as long as a condition holds.

Reverse mode works in bounded memory though the number of steps is known only at run time:

    rules.py        `while`: its types, meaning, tangents and lanes
    linearize.py    splits the loop: the known part runs, the linear part is written down
    recording.py    the known loop counts its steps and records checkpoints (checkpoints.py)
    linear_loop.py  `while_linear`: the linear loop, with the same number of steps
    walk_back.py    its transpose, from the last step to the first
    growing.py      the other policy: a scan that saves the residuals of all steps

docs/reverse-mode-of-while.md explains it with pictures.
"""
