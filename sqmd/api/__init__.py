"""Search over HTTP: for programs below /api/v1, and a page for people at /."""
