"""Values defined by equations: their derivatives do not look into the solver."""
