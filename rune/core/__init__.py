"""The language: types, programs, primitives, tracing, interpreters. It knows no operation."""
