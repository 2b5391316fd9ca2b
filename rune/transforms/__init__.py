"""Transformations of functions: one folder for each subject, and modules that they share.

    derivatives   jvp, linearize, vjp, grad, Jacobians
    batching      vmap, pmap
    compile       jit: keys, traces, sizes, devices, and from a program to something that runs
    custom        users' own rules: custom_jvp, custom_vjp
    checkpoint    fewer residuals, more recomputation
    inspect       explain, and why a function was traced again
    tuning        a search for fast schedules, by running them
    checks        NaN, indices out of bounds, random keys used twice
    sharding      programs on many devices          placement   where to put a program
    programs      programs of functions: making them, caching them, calling them in equations

Nothing is imported here: each module is imported by its own name.
"""
