"""Which packages of argand import which, without circles, and that none imports a framework."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import argand

ROOT = Path(argand.__file__).parent
ABOVE_ALL = ("argand", "argand.__main__", "argand.torch_ops", "argand.typing")
"""The public names, the command, operators of torch, types: they import every operation."""
ALLOWED = {
    "": {""},
    "command": {"", "runtime", "command"},
    "runtime": {"", "runtime"},
    "frameworks": {"", "runtime", "frameworks"},
    "gemm": {"", "runtime", "frameworks", "gemm"},
    "softmax": {"", "runtime", "frameworks", "softmax"},
    "dft": {"", "runtime", "frameworks", "dft"},
    "gates": {"", "runtime", "frameworks", "gates", "gemm"},
    "accelerate": {"", "runtime", "frameworks", "accelerate", "gemm"},
    "contract": {"", "runtime", "frameworks", "contract", "gemm"},
    "herk": {"", "runtime", "frameworks", "herk", "gemm"},
    "solve": {"", "runtime", "frameworks", "solve", "gemm"},
    "hermitian": {"", "runtime", "frameworks", "hermitian"},
    "image": {"", "runtime", "frameworks", "image"},
    "beam_power": {"", "runtime", "frameworks", "beam_power", "gemm"},
    "readout": {"", "runtime", "frameworks", "readout"},
    "channelise": {"", "runtime", "frameworks", "channelise", "dft", "gemm"},
    "spectrum": {"", "runtime", "frameworks", "spectrum", "channelise", "dft", "gemm"},
}
"""By package ("" are the modules beside the packages) the packages that it may import."""
ROOMS = {
    "": set(),
    "driver": set(),
    "files": set(),
    "cpu": {""},
    "compile": {"files"},
    "memory": {"", "driver"},
    "launch": {"driver", "compile", "memory"},
    "libraries": {"memory", "launch"},
    "plans": {"files", "compile", "memory"},
    "calls": {"cpu", "memory", "plans"},
    "measuring": {"compile"},
}
"""By folder of runtime ("" are the modules beside them) the folders that it may import."""


def modules() -> dict[str, Path]:
    """Every module of argand by its full name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = ("argand", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def test_every_package_says_what_it_imports_and_what_it_is() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == ALLOWED.keys() - {""}
    page = (ROOT.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = page[page.index("| folder |") : page.index("| `workflow/rules`")]
    named = {name for name in packages if f"`{name}`" in folders or f"argand/{name}" in folders}
    assert named == packages


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement; imports are in no expression, of which most of a tree is."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        children = ast.iter_child_nodes(node)
        waiting += [one for one in children if not isinstance(one, ast.expr)]


def imported(path: Path) -> Iterator[str]:
    """The modules of argand that a file imports, also in functions and for types alone."""
    for node in _statements(_parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("argand"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("argand"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else str(node.module)


def package(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ALLOWED else ""


def test_arrows_point_down() -> None:
    up = [
        f"{module} -> {other}"
        for module, path in MODULES.items()
        if module not in ABOVE_ALL
        for other in imported(path)
        if other in ABOVE_ALL or package(other) not in ALLOWED[package(module)]
    ]
    assert up == []


def room(module: str) -> str:
    parts = module.split(".")
    return parts[2] if len(parts) > 3 else ""


def test_folders_of_runtime_import_what_is_below() -> None:
    folders = {path.parent.name for path in ROOT.glob("runtime/*/__init__.py")}
    assert folders == ROOMS.keys() - {""}
    up = [
        f"{module} -> {other}"
        for module, path in MODULES.items()
        if package(module) == "runtime"
        for other in imported(path)
        if package(other) == "runtime" and room(other) not in {room(module), *ROOMS[room(module)]}
    ]
    assert up == []


def test_there_is_no_circle() -> None:
    arrows = {name: set(imported(path)) for name, path in MODULES.items()}
    while arrows:
        leaves = {name for name, others in arrows.items() if not others & arrows.keys() - {name}}
        assert leaves, f"circles among {sorted(arrows)}"
        arrows = {name: others for name, others in arrows.items() if name not in leaves}


def test_imports_in_functions_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from argand.gemm import api\n    import argand.dft.plan\n")
    assert sorted(imported(path)) == ["argand.dft.plan", "argand.gemm.api"]


def test_importing_argand_imports_no_framework() -> None:
    code = (
        "import sys, numpy, argand;"
        "x = numpy.ones((4, 4)); argand.gemm(x, x); argand.dft(x); argand.softmax(x);"
        "print([name for name in ('torch', 'jax', 'jaxlib', 'cupy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
