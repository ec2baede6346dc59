"""Run-time compilation of CUDA C++: compile and cache. Knows no operation.

A cubin is kept under ``$ARGAND_CACHE`` (else ``~/.cache/argand``) beneath a digest of everything
that decides it: the source, every header that it includes, the options, the architecture and
NVRTC's version. It is written under a temporary name and renamed, and carries its own checksum, so
that a damaged one is dropped and compiled again. It runs with the user's rights, so the folder and
what is read of it must be the user's own (`own_files`), and the bytes that were checked are those
that are loaded: no path is opened a second time.

Where the package ``argand-cubins`` is installed (`tools.cubins` builds it), what it has of the same
digest is not compiled either. It is trusted as the rest of what Python imports.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from argand.runtime.compile.cubin import kernel_usage
from argand.runtime.compile.cubin_cache import Resources, read_cached, read_shipped, write_cached
from argand.runtime.compile.nvrtc import CompileError, compile_program, nvrtc_version

SOURCES = Path(__file__).parents[2] / "cuda"
"""Folder of the kernels and of the headers that they share."""

_OPTIONS = ("--std=c++20", "--device-as-default-execution-space", "--minimal", "--ptxas-options=-v")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Compiled:
    """A cubin, the resources of each of its kernels, and the ``warnings`` of ptxas.

    ``path`` is where it is kept, for people and tools; what runs is ``cubin``.
    """

    path: Path
    cubin: bytes
    resources: dict[str, Resources]
    warnings: tuple[str, ...]
    cached: bool


def cache_folder() -> Path:
    """Return the folder of cubins and tuned plans: ``$ARGAND_CACHE``, else ``~/.cache/argand``."""
    given = os.environ.get("ARGAND_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "argand"


def with_headers(source: str, folder: Path = SOURCES) -> dict[str, str]:
    """Return the source and all headers of ours that it includes, by relative path.

    Raises CompileError for a header that does not exist.
    """
    found = {"": source}
    waiting = [("", source)]
    while waiting:
        name, text = waiting.pop()
        for included in _INCLUDE.findall(text):
            path = _header(included, (folder / name).parent if name else folder, folder)
            key = path.relative_to(folder).as_posix()
            if key not in found:
                found[key] = path.read_text(encoding="utf-8")
                waiting.append((key, found[key]))
    return found


def _header(included: str, beside: Path, folder: Path) -> Path:
    for path in (beside / included, folder / included):
        if path.is_file():
            return Path(os.path.normpath(path))
    raise CompileError(f"{included}: no such header beside {beside} or in {folder}")


def source_digest(texts: dict[str, str], *more: str) -> str:
    """Return a SHA-256 over named texts and further strings, each delimited by its length."""
    digest = hashlib.sha256()
    for part in [item for pair in sorted(texts.items()) for item in pair] + list(more):
        data = part.encode()
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


def compile_cubin(
    source: str, target: str, *, options: Sequence[str] = (), folder: Path = SOURCES,
    begun: Callable[[], object] = lambda: None,
) -> Compiled:  # fmt: skip
    """Compile a source for an architecture (``sm_80``, ``sm_90a``), or take it from the cache.

    ``begun`` is called right before NVRTC runs, which other threads run beside; it is not where the
    cache has the cubin.

    Needs NVRTC but no GPU. Raises CompileError where NVRTC is missing or reports an error, and
    NotOwnFolderError where others may write into the cache.
    """
    every = (*_OPTIONS, *options, f"--gpu-architecture={target}", f"--include-path={folder}")
    # The folder's own name does not decide the code, so it stays out of the key.
    key = source_digest(with_headers(source, folder), *every[:-1], nvrtc_version())
    path = cache_folder() / f"{key}.cubin"
    kept = read_cached(path)
    if kept is not None:
        return Compiled(path, *kept, cached=True)
    shipped = read_shipped(key)
    if shipped is not None:
        return Compiled(shipped[0], *shipped[1], cached=True)
    begun()
    cubin, log = compile_program(source, every)
    resources, warnings = _of_cubin(cubin) | parse_resources(log), parse_warnings(log)
    write_cached(path, cubin, resources, warnings)
    return Compiled(path, cubin, resources, warnings, cached=False)


_FUNCTION = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def parse_resources(log: str) -> dict[str, Resources]:
    """Read each kernel's registers, spills, stack and static shared memory from ptxas -v's log."""
    found = {}
    name, stack = "", ("0", "0", "0")
    for line in log.splitlines():
        if match := _FUNCTION.search(line):
            name = match[1]
        elif match := _STACK.search(line):
            stack = (match[1], match[2], match[3])
        elif (match := _USED.search(line)) and name:
            frame, stores, loads = (int(number) for number in stack)
            found[name] = Resources(int(match[1]), stores, loads, frame, int(match[2] or 0))
    return found


def _of_cubin(cubin: bytes) -> dict[str, Resources]:
    """Return registers and stack as the cubin has them; the stack, which holds spills, as spills.

    The log has been seen without a word of ptxas, where other processes had compiled the source.
    """
    return {
        name: Resources(registers, stack, stack, stack, 0)
        for name, (registers, stack) in kernel_usage(cubin).items()
    }


_WARNING = re.compile(r"\(C75\d\d\).*")


def parse_warnings(log: str) -> tuple[str, ...]:
    """Return the warnings of ptxas about slow code for Hopper, each from its number (C75..) on.

    They report serialized wgmma, inserted waits, or a ``setmaxnreg`` without effect.
    """
    return tuple(match[0].rstrip() for match in _WARNING.finditer(log))


def compile_all(jobs: Iterable[tuple[str, str]]) -> None:
    """Compile (source, target) pairs into the cache on all cores: NVRTC releases the GIL.

    Raises CompileError where one does not compile.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: compile_cubin(*job), dict.fromkeys(jobs)))
