"""Measurements in processes of their own, so that time and memory are theirs alone."""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path


def measured(file, names, limit):
    """What a script's child prints as JSON; a word where it did not end or failed."""
    command = [sys.executable, file, "--child", *map(str, names)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"over {limit:.0f} s"
    if done.returncode != 0:
        return "failed"
    return json.loads(done.stdout.splitlines()[-1])


def resident(field):
    """A line of this process's memory in MiB: VmRSS, or VmHWM for the highest."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (found,) = [line for line in lines if line.startswith(field)]
    return int(found.split()[1]) / 1024


def forget_peak():
    """Give back what is free and let the highest memory be counted anew."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident("VmRSS")
