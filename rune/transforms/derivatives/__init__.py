"""Derivatives: forward mode, its linear part as a program, and that program run backwards.

grad -> vjp -> linearize -> jvp        the values, and the linear map of their tangents
               transpose               the linear map run backwards, from cotangents
"""
