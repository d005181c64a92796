"""The companion of squirrel_mcp: the same server and commands, with search by meaning as well.

It plugs into the base as an `Edition` with a `Ranker` of its own (docs/decisions/0006-ranker-protocol.md).
"""
