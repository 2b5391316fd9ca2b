"""The language: types, programs, primitives, tracing, interpreters. It contains no operations."""
