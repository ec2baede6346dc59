"""Pages of the repository: links lead somewhere, and what pages name is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|cuh))`")


def pages(root: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [root / name for name in listed if name and (root / name).is_file()]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found = set()
    for heading in HEADING.findall(CODE.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading))
        found.add(words.strip().lower().replace(" ", "-"))
    return found


def dead_links(page: Path) -> list[str]:
    """The links of a page, or their anchors, that lead nowhere within the repository."""
    found = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            found.append(link)
    return found


def missing_files(page: Path, folders: list[Path]) -> list[str]:
    """The files in back quotes that are in none of the folders.

    In a line a name without a folder is in that of the name before it.
    """
    found = []
    for line in page.read_text(encoding="utf-8").splitlines():
        folder = ""
        for name in NAMED.findall(line):
            whole = name if "/" in name or not folder else f"{folder}/{name}"
            folder = whole.rpartition("/")[0]
            if not any((base / whole).is_file() for base in folders):
                found.append(whole)
    return found


def test_links_lead_somewhere(root: Path) -> None:
    dead = {str(page.relative_to(root)): dead_links(page) for page in pages(root)}
    assert {page: links for page, links in dead.items() if links} == {}


def test_pages_of_experiments_say_what_measures_what_was_kept(root: Path) -> None:
    """By a row among what was tried, or by a command or a table of their own."""
    folder = root / "docs/experiments"
    rows = (folder / "README.md").read_text()
    for page in sorted(folder.glob("2*.md")):
        text = page.read_text()
        own = any(word in text for word in ("python -m", "(../data/", "(../tables/"))
        assert own or (page.name in rows and "(README.md)" in text), page.name


def test_kernel_pages_name_files_that_are_there(root: Path) -> None:
    package = root / "kernels" / "argand"
    folders = [
        root,
        package,
        *(
            package / name
            for name in (
                "gemm", "softmax", "dft", "gates", "image", "solve", "channelise", "spectrum",
                "beam_power",
            )
        ),
        *(package / name for name in ("gemm/modular", "cuda/gemm/modular")),
    ]  # fmt: skip
    named = sorted((root / "docs" / "kernels").glob("*.md"))
    assert named
    missing = {page.name: missing_files(page, folders) for page in named}
    assert {page: files for page, files in missing.items() if files} == {}


def test_other_pages_name_files_that_are_there(root: Path) -> None:
    """In any folder, but for what a reader is to write, whose name has capitals."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    there = {tail for path in listed for tail in _tails(path)}
    own = [root / "README.md", root / "config/README.md", *sorted((root / "docs").glob("*.md"))]
    named = {page.name: NAMED.findall(page.read_text(encoding="utf-8")) for page in own}
    missing = {
        page: [name for name in names if name not in there and name.islower()]
        for page, names in named.items()
    }
    assert {page: files for page, files in missing.items() if files} == {}


def _tails(path: str) -> list[str]:
    """A path from each of its folders on."""
    parts = path.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("# One two\n[a](#one-two) [b](page.md#one-two) [c](page.md)\n", []),
        ("[a](other.md) [b](#nowhere)\n```\n# nowhere\n[c](d)\n```\n", ["other.md", "#nowhere"]),
    ],
)
def test_a_dead_link_is_seen(tmp_path: Path, text: str, dead: list[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert dead_links(page) == dead


def test_a_missing_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "gemm").mkdir()
    (tmp_path / "gemm" / "api.py").touch()
    page = tmp_path / "page.md"
    page.write_text("`gemm/api.py`, `gone.py` and `api.py`\n")
    assert missing_files(page, [tmp_path]) == ["gemm/gone.py"]


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
