"""`python -m squirrel_mcp.mcp_server`: the stdio server."""

from squirrel_mcp.mcp_server.lifecycle import main

main()
