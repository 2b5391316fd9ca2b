"""Values defined by equations, whose derivatives do not look into the solver."""
