"""The executor that a profile of Snakemake names.

`make` runs this file before any package is installed, so it imports none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_EXECUTOR = re.compile(r"^executor: *([a-z0-9-]+)", re.MULTILINE)


def executor_of(profile: Path) -> str:
    """Return the executor that submits a profile's jobs; empty where it runs them here.

    Raises OSError where the folder has no readable config.yaml.
    """
    found = _EXECUTOR.search((profile / "config.yaml").read_text(encoding="utf-8"))
    return found[1] if found else ""


if __name__ == "__main__":
    sys.stdout.write(executor_of(Path(sys.argv[1])))
