"""The scalar library: which operations kernel code has, and what a stage must know of them."""
