"""`python -m squirrel_mcp` is the command `squirrel-mcp`."""

from squirrel_mcp.cli import main

main()
