"""Memories in and out of a vault as files (docs/export.md): sealed as they are, or readable as JSON lines."""
