"""What backends share: the protocol, plans made concrete, memory, the disk cache, counts, timing.

Nothing here knows a driver, or a backend by its name.
"""
