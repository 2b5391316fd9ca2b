"""Looking into a call: every stage of its compilation, and why it was traced again."""
