"""The companion of squirrel_mcp: search by meaning. An empty room so far; nothing here does anything yet.

It will plug into the base through `squirrel_mcp.search`'s `Ranker` protocol (docs/decisions/0006-ranker-protocol.md).
"""
