"""The keyless half: a store for sealed records and their log. It imports nothing that could decrypt them."""
