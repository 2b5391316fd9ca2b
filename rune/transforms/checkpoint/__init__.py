"""checkpoint: which values a derivative keeps, and which it computes again."""
