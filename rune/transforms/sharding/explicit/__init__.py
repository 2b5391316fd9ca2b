"""Layouts as types: how values are split along the Explicit axes of a mesh, known while tracing.

known.py     what is known of a value: a layout, that it is free, or nothing
rules.py     the layout of an operation's result from those of its operands, or a refusal
reshapes.py  the rule of reshape
programs.py  the same for programs, and for the operations that hold them
stage.py     the stage that knows the layouts of what it writes, and eager operations
"""
