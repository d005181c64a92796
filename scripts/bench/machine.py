"""Which machine a table of numbers comes from."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe() -> str:
    """System, processor, cores and Python, in one line."""
    return f"{platform.platform()}, {_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
