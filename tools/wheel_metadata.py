"""Metadata of a wheel that only a release knows: where the project can be found.

``ARGAND_REPOSITORY`` names the repository's address when a wheel is built. Without it a wheel names
none, since the tree knows none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "ARGAND_REPOSITORY"
_RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)]+)\)")
_PICTURE = re.compile(r"\.(svg|png)$")


def urls(repository: str) -> dict[str, str]:
    """Return the addresses that an index shows, by the names that it knows.

    Raises:
        ValueError: The repository's address is not one of the web.
    """
    found = urlsplit(repository)
    if found.scheme not in ("https", "http") or not found.netloc:
        raise ValueError(
            f"{REPOSITORY} is {repository!r}: give an address such as https://host/argand"
        )
    at = repository.rstrip("/")
    return {
        "Homepage": at,
        "Source": at,
        "Documentation": f"{at}/blob/main/docs/python.md",
        "Changelog": f"{at}/blob/main/CHANGELOG.md",
        "Issues": f"{at}/issues",
    }


def with_addresses(text: str, repository: str) -> str:
    """Return a page whose relative links, and pictures, begin with the repository's address."""
    at = repository.rstrip("/")

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if _PICTURE.search(link[1]) else "blob"
        return f"]({at}/{kind}/main/{link[1]})"

    return _RELATIVE_LINK.sub(absolute, text)


class WheelMetadata(MetadataHookInterface):
    """Hatchling's hook, named in ``pyproject.toml``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Give the metadata its description and, where the environment names one, its addresses."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository := os.environ.get(REPOSITORY):
            metadata["urls"] = urls(repository)
            text = with_addresses(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
