"""The MCP server over stdio. `lifecycle.main` runs it; nothing is imported here, so that it starts fast."""
