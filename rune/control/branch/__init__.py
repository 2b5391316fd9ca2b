"""cond and switch: a number selects one of several programs to run."""
