"""Lowering: from a program to a plan, in stages that are pure functions of values.

    pipeline    every pass in order, on one page
    stages      the stages, applied one after another
    decompose   nested programs inlined, primitives expanded
    simplify/   program passes: constants, laws, common and dead equations
    kernelize/  equations -> kernels (kernels.py; kernels_text, kernels_parse, kernels_check)
    order       the order of the steps
    build/      kernels -> loops (kernel/: the loop language, its check, text and interpreter)
    optimize/   passes over loops
    memory      offsets, in-place results, donation -> plan (plan.py; plan_text, plan_check)
    codegen/    loops -> source, for the backends
    explain     every stage of one lowering, with costs

Imports no driver.
"""
