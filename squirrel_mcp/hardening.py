"""What a process that holds keys does about itself: no core dumps, no reading by its user's other processes.

This reduces what leaks by accident; it does not stop malware of the same user (docs/security.md).
"""

from __future__ import annotations

import sys

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def harden() -> None:
    """Best effort: a platform without these calls goes without them."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
