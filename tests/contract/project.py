"""The project as its contract tests see it: where it is, and which files it has."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "trueup"
SOURCES = sorted(PACKAGE.rglob("*.py"))
GOLDEN = ROOT / "tests" / "golden"


def name_of(path: Path) -> str:
    """A file as a test id: its path from the root of the project."""
    return path.relative_to(ROOT).as_posix()
