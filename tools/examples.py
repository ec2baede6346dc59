"""The published data of an example: fetched by commit and path, and checked against their SHA-256.

    python -m tools.examples hera

A file that is there with its SHA-256 is not fetched again. `git` fetches the commit without its
files, then the files that are named, so a large repository costs little.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from argand.runtime.files.whole_files import atomic_path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "examples" / "sources.yaml"
DATA = ROOT / "examples" / "data"
_LONGEST_S = 600
"""A server that says nothing for so long has failed."""


class FetchError(RuntimeError):
    """The data of an example cannot be had, or are not those that were published."""


@dataclass(frozen=True)
class Source:
    """The place where the files of an example are published.

    Attributes:
        repository: what `git fetch` takes.
        commit: 40 hexadecimal digits.
        licence: the licence of the data.
        files: the path there and the SHA-256 of each name here.
    """

    repository: str
    commit: str
    licence: str
    files: Mapping[str, Mapping[str, str]]


def read_sources() -> dict[str, Source]:
    """Return the sources of every example, by its name."""
    listed: dict[str, dict[str, Any]] = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))
    return {name: Source(**fields) for name, fields in listed.items()}


def fetch(source: Source, folder: Path) -> list[str]:
    """Fetch the files that the folder lacks; the names of those that were.

    Each file appears whole and with its SHA-256, or not at all.

    Raises:
        FetchError: git is missing or fails, a file is not in the commit, or is another one.
    """
    missing = [name for name, row in source.files.items() if not _is_there(folder / name, row)]
    if not missing:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="argand-example-") as scratch:
        _git(scratch, "init", "--quiet")
        _git(scratch, "remote", "add", "origin", source.repository)
        _git(
            scratch, "fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", source.commit
        )
        for name in missing:
            row = source.files[name]
            data = _git(scratch, "cat-file", "blob", f"{source.commit}:{row['path']}")
            found = hashlib.sha256(data).hexdigest()
            if found != row["sha256"]:
                raise FetchError(
                    f"{row['path']} of {source.repository} has SHA-256 {found}, "
                    f"not {row['sha256']}: nothing was written"
                )
            with atomic_path(folder / name) as temporary:
                temporary.write_bytes(data)
    return missing


def _is_there(path: Path, row: Mapping[str, str]) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == row["sha256"]


def _git(folder: str, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, check=False, timeout=_LONGEST_S
        )
    except FileNotFoundError:
        raise FetchError("git is not installed, which fetches the data of examples") from None
    except subprocess.TimeoutExpired:
        raise FetchError(f"git {arguments[0]}: no answer for {_LONGEST_S} s") from None
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise FetchError(f"git {' '.join(arguments)}: {said}")
    return done.stdout


def without_data() -> list[str]:
    """Return the examples that compute their data: studies without sources there."""
    studies = {path.stem for path in SOURCES.parent.glob("*.yaml")}
    return sorted(studies - {SOURCES.stem, *read_sources()})


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch what an example needs; 1 with the reason where that fails."""
    sources = read_sources()
    found = argparse.ArgumentParser(prog="python -m tools.examples", description=__doc__)
    found.add_argument("name", choices=[*sources, *without_data()], help="of the example")
    found.add_argument("--repository", help="a mirror or a clone of the published one")
    given = found.parse_args(argv)
    if given.name not in sources:
        sys.stdout.write(f"{given.name}: nothing to fetch, its data are computed\n")
        return 0
    source = sources[given.name]
    if given.repository:
        source = Source(given.repository, source.commit, source.licence, source.files)
    folder = DATA / given.name
    try:
        fetched = fetch(source, folder)
    except (FetchError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    have = len(source.files) - len(fetched)
    sys.stdout.write(
        f"{folder}: fetched {len(fetched)} of {source.repository} ({source.licence}), {have} here\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
