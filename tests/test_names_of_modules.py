"""Names that files read of argand's modules, or replace in them, exist.

Types do not tell where a module has the name of a public function, as `argand.gemm` has, and names
to replace are text. Many of these files run on a GPU alone, where nobody looks when a name changes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_IMPORT = re.compile(r"^ *from (argand\.[\w.]+) import (\w+)(?: as (\w+))?$", re.MULTILINE)


def source_of(module: str) -> Path | None:
    """Return the file of a module; None where there is no such module."""
    path = ROOT / "kernels" / module.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return source if source.exists() else None


@cache
def names_in(source: Path) -> frozenset[str]:
    """Return the names that a module's text binds."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update((x.asname or x.name).partition(".")[0] for x in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return frozenset(found)


def missing_in(text: str) -> list[str]:
    """Return the names that a file expects of modules which it imports, and which lack them."""
    modules = {
        alias or name: source
        for package, name, alias in _IMPORT.findall(text)
        if (source := source_of(f"{package}.{name}")) is not None
    }
    if not modules:
        return []
    nodes = list(ast.walk(ast.parse(text)))
    bound = {x.arg for x in nodes if isinstance(x, ast.arg)}
    bound |= {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    modules = {name: source for name, source in modules.items() if name not in bound}
    return [
        f"{module}.{name}"
        for module, name in _names_read(nodes, modules)
        if not name.startswith("__") and name not in names_in(modules[module])
    ]


def _names_read(nodes: list[ast.AST], modules: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield module and name of what a file reads of a module, or replaces in one."""
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules:
                yield module, name
            case ast.Call(
                func=ast.Attribute(attr="setattr"),
                args=[ast.Name(id=module), ast.Constant(value=str(name)), *_],
            ) if module in modules:
                yield module, name


def test_files_name_what_is_there() -> None:
    found = {
        path.relative_to(ROOT): missing
        for folder in ("tests", "benchmarks", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if (missing := missing_in(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_a_missing_name_is_found() -> None:
    text = "from argand.gemm import prepare as one\nfrom argand.gemm import heuristics\n"
    text += "one.prepare\none.prepares\npatch.setattr(heuristics, 'chosen', 1)\n"
    assert missing_in(text) == ["one.prepares", "heuristics.chosen"]
