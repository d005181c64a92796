"""From a folder to chunks: scan, read, parse, chunk. Nothing here knows of a database or a model."""
