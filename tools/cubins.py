"""The optional wheel ``argand-cubins``: kernels of common products, which nobody compiles then.

    python -m tools.cubins dist/

It holds what NVRTC makes here of the plans that an A100 and an H200 take at common sizes. A cubin
serves the sources, options and version of NVRTC that it was made of; with others kernels are
compiled as without the wheel. Needs CuPy and no GPU; takes some minutes on all cores.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from argand import PRECISIONS
from argand.device import ARCHITECTURES, Device
from argand.precision import ROUNDED_PRECISIONS
from argand.runtime.compile.cubin_cache import SHIPPED_PACKAGE
from argand.runtime.compile.nvrtc import nvrtc_version

Sizes = tuple[int, int, int]
"""m, n and k of a product."""
SIZES: tuple[Sizes, ...] = (
    *((size, size, size) for size in (64, 128, 256, 512, 1024, 2048, 4096, 8192)),
    *((few, 4096, 4096) for few in (16, 64, 256)),
    *((4096, few, 4096) for few in (16, 64, 256)),
    (512, 512, 1 << 17),
)
"""Sizes of one product of row-major operands each."""
CARDS = {"sm_80": ("NVIDIA A100", 108), "sm_90a": ("NVIDIA H200", 132)}
"""A name and the multiprocessors of the card whose plans are taken, by target."""


_ALIGNED = 32
"""Bytes on which an operand begins, as those of a pool of memory do."""


def compile_products(
    targets: Iterable[str], precisions: Iterable[str], sizes: Iterable[Sizes]
) -> str:
    """Compile the kernels of products into the cache; return how many, in words.

    Raises CompileError where one does not compile.
    """
    from argand.gemm.launch import GemmLaunch
    from argand.runtime.compile.loading import NotLaunchedError, compiling_only

    with compiling_only() as done:
        for arguments in _products(targets, precisions, sizes):
            try:
                GemmLaunch(*arguments)
            except NotLaunchedError:
                continue  # its kernel is on its way
    if done.failures:
        raise done.failures[0]
    return str(done)


def _products(
    targets: Iterable[str], precisions: Iterable[str], sizes: Iterable[Sizes]
) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of `GemmLaunch` of each product on each card."""
    from argand.gemm.heuristics import choose
    from argand.gemm.problem import gemm_problem
    from argand.gemm.product_form import OperandForm
    from argand.gemm.question import GemmSizes, Question

    for target, precision, (m, n, k) in itertools.product(targets, precisions, tuple(sizes)):
        (arch,) = (arch for arch in ARCHITECTURES if arch.target == target)
        name, multiprocessors = CARDS[target]
        card = Device("cuda", name, 0, arch, multiprocessors)
        problem = gemm_problem((m, k), (k, n), None, precision=PRECISIONS[precision])
        a, b = (
            OperandForm(layout)
            for layout in (_row_major(m, k), _row_major(k, n).transposed)
        )  # fmt: skip
        question = Question(problem.precision, GemmSizes(1, m, n, k), a.traits, b.traits)
        choice = choose(question, arch, multiprocessors)
        yield problem, a, b, None, _row_major(m, n), choice, card


def _row_major(rows: int, columns: int) -> Any:
    from argand.runtime.calls.layout import Layout

    return Layout(rows, columns, columns, 1, 0, 8, _ALIGNED)


def build_wheel(cubins: Path, out: Path) -> Path:
    """Build a wheel of the cubins in a folder, with their descriptions; return its path.

    Raises subprocess.CalledProcessError where hatchling fails.
    """
    with tempfile.TemporaryDirectory(prefix="argand-cubins-") as name:
        tree = Path(name)
        package = tree / SHIPPED_PACKAGE
        package.mkdir()
        count = 0
        for path in sorted(cubins.glob("*.cubin")):
            shutil.copy(path, package)
            shutil.copy(path.with_suffix(".checked"), package)
            count += 1
        words = f"{count} cubins of argand {version('argand')} by NVRTC {nvrtc_version()}"
        (package / "__init__.py").write_text(
            f'"""{words}; `argand` finds them by their digests."""\n'
        )
        (tree / "pyproject.toml").write_text(_project(words))
        command = ["-m", "hatchling", "build", "-t", "wheel", "-d", str(out.resolve())]
        subprocess.run([sys.executable, *command], cwd=tree, check=True, capture_output=True)
    return out / f"{SHIPPED_PACKAGE}-{version('argand')}-py3-none-any.whl"


def _project(description: str) -> str:
    return (
        '[build-system]\nrequires = ["hatchling>=1.27"]\nbuild-backend = "hatchling.build"\n'
        f'[project]\nname = "argand-cubins"\nversion = "{version("argand")}"\n'
        f'description = "{description}"\nlicense = "BSD-3-Clause"\n'
        'requires-python = ">=3.11"\n'
        f'dependencies = ["argand=={version("argand")}"]\n'
        f'[tool.hatch.build.targets.wheel]\npackages = ["{SHIPPED_PACKAGE}"]\n'
    )


def main() -> None:
    """Compile common products and build the wheel."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="the folder for the wheel")
    parser.add_argument("--targets", nargs="+", choices=CARDS, default=list(CARDS))
    parser.add_argument(
        "--precisions", nargs="+", choices=ROUNDED_PRECISIONS, default=list(ROUNDED_PRECISIONS)
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="argand-cubins-") as folder:
        os.environ["ARGAND_CACHE"] = folder
        sys.stdout.write(f"{compile_products(given.targets, given.precisions, SIZES)}\n")
        sys.stdout.write(f"{build_wheel(Path(folder), given.out)}\n")


if __name__ == "__main__":
    main()
