"""Program passes, one file each, with an example before and after. pipeline.py has their order."""
