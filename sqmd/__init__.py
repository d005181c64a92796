"""Search over Markdown folders, by words and by meaning: from the command line, over HTTP and over MCP."""
