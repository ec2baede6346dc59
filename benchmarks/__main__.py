"""Lists the programs of benchmarks, each with the first line of its docstring.

python -m benchmarks
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def programs() -> dict[str, str]:
    """Return the first line of each program's docstring, by the name of its module."""
    found = {}
    for path in sorted(FOLDER.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path == Path(__file__) or 'if __name__ == "__main__":' not in text:
            continue
        # A package's docstring is in its __init__.py.
        is_package = path.name == "__main__.py"
        source = path.with_name("__init__.py").read_text(encoding="utf-8") if is_package else text
        module = path.parent if is_package else path.with_suffix("")
        name = ".".join((FOLDER.name, *module.relative_to(FOLDER).parts))
        found[name] = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    return dict(sorted(found.items()))


def main() -> int:
    """Print a line for each."""
    for name, line in programs().items():
        print(f"{name:32} {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
