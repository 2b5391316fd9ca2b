"""while_loop and fori_loop: a function as long as a condition holds, with its reverse mode."""
