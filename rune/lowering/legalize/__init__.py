"""Legalize: what no device computes with becomes what every device does.

complex_parts   programs: a complex array becomes its real and imaginary parts
storage         kernel code: 8-bit floats, 4-bit integers, and half types where a target has
                none, are kept as bits and computed in f32 and i8;  formats has the bits
"""
