"""Languages of the C family: one renderer, and a dialect of data for each."""
