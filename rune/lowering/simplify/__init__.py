"""Program passes: each a file with its before and after. The order stands in pipeline.py."""
