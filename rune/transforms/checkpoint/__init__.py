"""checkpoint: which values a derivative saves, and which it recomputes."""
