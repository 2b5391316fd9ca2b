"""Tiny vectors: a vector that a matrix is multiplied by is scaled up first if all of it is tiny.

Before   for i in 64 grid { var s = 0; for k in 64 { s add= w[64*i + k] * v[k] }; y[i] = s }
After    tiny = all |v[k]| < 2**-100; u = tiny ? v * 2**64 : v
         for i in 64 grid { var s = 0; for k in 64 { s add= w[64*i + k] * u[k] }
                            if tiny { s = s * 2**-64 }; y[i] = s }

Processors of x86 take some 150 cycles for a product or a fused step with a denormal number, and
cotangents of long loops pass through these numbers on their way to 0. A matrix and a vector have n²
products, a vector has n elements. Both scalings are done by bits, which do not wait.

A sum that meets no number below the normal ones has the same bits, since a power of two scales
every rounding; any other is rounded once, rather than at each step. Nothing overflows that did not:
elements below 2**-36, times any number, are below 2**92.
"""
