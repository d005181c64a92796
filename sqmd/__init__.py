"""Search over Markdown folders. An empty room so far; nothing here does anything yet."""
