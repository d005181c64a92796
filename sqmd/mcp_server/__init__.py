"""The index for agents, over MCP."""
