"""Functions on many lanes at once: vmap on one device, pmap on as many as there are."""
