"""Legalize: replace dtypes that a device lacks by dtypes that it has.

pairs           programs: a complex array, or one of keys, becomes its two parts, by parts
storage         kernel code: 8-bit floats, 4-bit integers, and half types where a target has
                none, are stored as bits and computed in f32 and i8, by narrow_storage;
                formats has the bits
"""
