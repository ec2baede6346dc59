"""The command line of programs that draw a figure of recorded rows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def data_and_svg(description: str | None, argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments ``data``, the folder of the CSVs, and ``svg``, the file to write."""
    found = argparse.ArgumentParser(description=description)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    found.add_argument("data", type=Path, help="the folder of the CSVs")
    found.add_argument("svg", type=Path)
    return found.parse_args(argv)
