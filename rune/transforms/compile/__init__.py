"""jit: a call is looked up by its key; a new one is traced, lowered, compiled and remembered.

jit                 the call: key, trace, run
static_arguments    arguments that jit is told of, by number or by name
declared_sizes      symbolic axes that the user names; automatic_sizes: those that are noticed
trace_cache         traces, who shares them, and how many are kept
jit_primitive       jit inside other programs
run                 from a program to something that runs
placement           on which device; partition, transfer: in which parts, and the moves between
native_calls        what native code must know to make a call
"""
