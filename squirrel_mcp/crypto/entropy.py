"""Where salts, nonces, ids and keys come from."""

from __future__ import annotations

import os
from collections.abc import Callable

Random = Callable[[int], bytes]
"""Gives that many uniformly random bytes."""

system: Random = os.urandom  # straight from the kernel: a fork cannot repeat what its parent drew
