"""cond and switch: one of several programs, chosen by a number."""
