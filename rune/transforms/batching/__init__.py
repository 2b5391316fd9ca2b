"""Functions on many lanes at once: vmap on one device, pmap on several."""
