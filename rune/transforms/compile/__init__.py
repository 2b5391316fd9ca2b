"""jit: a call is looked up by its key; a new one is traced, lowered, compiled and cached.

jit                 the call: key, trace, run
static_arguments    static and donated arguments, by number or by name
declared_sizes      symbolic axes that the user names; automatic_sizes: those that rune finds
trace_cache         traces, who shares them, and how many are kept
jit_primitive       jit inside other programs
run                 from a program to something that runs
placement           on which device; partition, transfer: in which parts, with moves between
native_calls        what native code needs to know to make a call
"""
