"""Users' own derivative rules, and hidden arguments made explicit."""
