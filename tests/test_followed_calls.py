"""Pages that follow calls name functions that are in the files beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FILE = r"`((?:[\w-]+/)*[\w-]+\.(?:py|cuh))`"
ROW = re.compile(rf"\| `(\w+)` \| {FILE} \|")
BESIDE = re.compile(rf"`(\w+)` \({FILE}")


def named(text: str) -> list[tuple[str, str]]:
    """The names of a page with their files.

    A file without a folder is in that of the last file that the line names before it.
    """
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        files = [*re.finditer(FILE, line)]
        for match in (*ROW.finditer(line), *BESIDE.finditer(line)):
            name, file = match.groups()
            before = [x[1] for x in files if x.start() < match.end() and "/" in x[1]]
            whole = file if "/" in file or not before else f"{Path(before[-1]).parent}/{file}"
            found.append((name, whole))
    return found


def defines(source: str, name: str) -> bool:
    """Whether a file of Python or CUDA C++ defines a function, a type or a constant."""
    python = rf"^ *(?:def|class) {name}\b|^{name} = "
    cuda = rf"^ *(?:struct|class) {name}\b|^constexpr .*\b{name} = |__forceinline__ [^(]*\b{name}\("
    return re.search(f"{python}|{cuda}", source, re.MULTILINE) is not None


PAGES = (
    (("docs/kernels/calls.md", "docs/kernels/gemm.md"), "kernels/argand", 80),
    (("docs/architecture.md",), "workflow", 15),
)
"""Pages, the folder that their paths start at, and how many names they have at least."""


@pytest.mark.parametrize(("pages", "folder", "least"), PAGES)
def test_functions_are_in_the_files_beside_them(
    root: Path, pages: tuple[str, ...], folder: str, least: int
) -> None:
    package = root / folder
    pairs = [pair for page in pages for pair in named((root / page).read_text(encoding="utf-8"))]
    assert len(pairs) > least
    wrong = [
        f"{name} of {file}"
        for name, file in pairs
        if not (package / file).is_file() or not defines((package / file).read_text(), name)
    ]
    assert wrong == []


def test_a_name_that_is_gone_is_seen() -> None:
    text = "| `gone` | `gemm/api.py` | by `other` (`gpu.py`) |\nand `third` (`cuda/gemm/x.cuh`)"
    assert named(text) == [
        ("gone", "gemm/api.py"), ("other", "gemm/gpu.py"), ("third", "cuda/gemm/x.cuh"),
    ]  # fmt: skip
    source = """class One:
    def two(self) -> None: ...
__device__ __forceinline__ float2 three(int x) { return four(x); }
"""
    assert [x for x in ("One", "two", "three", "four") if not defines(source, x)] == ["four"]
