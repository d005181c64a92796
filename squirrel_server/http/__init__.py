"""The store over HTTP: FastAPI on uvicorn. Section 5 of docs/protocol.md is the contract.

A request passes through `observation` (logs, metrics), `gate` (limits, key, scope, body), a function of one of the
`*_routes` modules, and the store. Whatever is refused on the way is a `problems.Problem`.
"""
