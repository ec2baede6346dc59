"""Write every generated file again: ``python -m tools.docs``."""

from __future__ import annotations

from tools.docs.pages import generated
from workflow.storage.files import atomic_text


def main() -> None:
    """Write them all."""
    for path, text in generated().items():
        atomic_text(path, text)


if __name__ == "__main__":
    main()
