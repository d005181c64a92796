"""`python -m squirrel_mcp_embeddings` is the command `squirrel-mcp-embeddings`."""

from squirrel_mcp_embeddings.cli import main

main()
