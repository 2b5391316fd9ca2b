"""Users' own rules for derivatives and lanes, and closed-over values as explicit arguments."""
