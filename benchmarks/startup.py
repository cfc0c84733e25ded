"""How long `trueup --help` takes, against `python -c "import numpy"`.

    python benchmarks/startup.py

Prints the ratio of the medians of alternating runs; the limit is 1.5.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

LIMIT = 1.5
RUNS = 15


def seconds(*args):
    start = time.perf_counter()
    subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    numpy, ours = [], []
    for _ in range(RUNS):
        numpy.append(seconds("-c", "import numpy"))
        ours.append(seconds("-m", "trueup", "--help"))
    ratio = statistics.median(ours) / statistics.median(numpy)
    print(
        f"trueup --help {statistics.median(ours):.3f} s, import numpy "
        f"{statistics.median(numpy):.3f} s: ratio {ratio:.2f} (limit {LIMIT})"
    )
    raise SystemExit(ratio > LIMIT)


if __name__ == "__main__":
    main()
