"""jit: a call is looked up by its key; a new one is traced, lowered, compiled and cached.

jit                 the call: key, trace, run
static_arguments    static and donated arguments, by number or by name
declared_sizes      symbolic axes that the user names; automatic_sizes: those that rune finds
trace_cache         traces, which functions share them, and how many are stored
jit_primitive       jit inside other programs
run                 the checks and moves before a run; executables: compiled code
placement           on which device; partition, transfer: in which parts, with moves between
native_calls        the description of a call, from which native code makes further calls
"""
