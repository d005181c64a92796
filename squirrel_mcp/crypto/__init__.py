"""Keys, records and the log as pure functions: bytes in, bytes out. docs/protocol.md is the specification.

Nothing in this package reads a file, a clock or the environment. Randomness is an argument (`random`), by
default the operating system's, so that the test vectors can be made again.

What decrypts with one 1.x version decrypts with every later one.
"""
