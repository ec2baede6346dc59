"""Mutations that a seed draws: one operator, number, statement or error of a file is changed."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutations import Mutation

GROUPS = {
    "kernels": ("kernels/argand/*/cpu*.py", "kernels/argand/rounding.py"),
    "bounds": ("workflow/accuracy/*.py",),
    "storage": ("workflow/files/*.py", "workflow/inputs/*.py", "workflow/storage/*.py"),
    "steps": ("workflow/jobs/*.py", "workflow/preflight/*.py", "workflow/steps/*.py"),
}
"""Files by group; as many mutations are drawn of each."""
_COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
_UNARY = {ast.Not: "not", ast.USub: "-"}
_LARGEST = 100
"""Larger numbers are sizes of blocks more often than anything that a result depends on."""


class _Edit(NamedTuple):
    """Offsets in bytes of what is replaced, and by what."""

    start: int
    stop: int
    after: str


def drawn(root: Path, count: int, seed: int) -> list[Mutation]:
    """Return ``count`` mutations of each group, with the tests of the same folder."""
    generator, found = random.Random(seed), []
    for patterns in GROUPS.values():
        files = sorted(path for pattern in patterns for path in root.glob(pattern))
        edits = [(path, edit) for path in files for edit in _edits(path.read_bytes())]
        for path, edit in generator.sample(edits, count):
            found.append(_mutation(root, path, edit))
    return found


@cache
def _edits(source: bytes) -> list[_Edit]:
    tree = ast.parse(source)
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    left_out = {id(inner) for node in ast.walk(tree) for inner in _left_out(node)}
    return [
        edit
        for node in ast.walk(tree)
        if id(node) not in left_out
        for edit in _edits_of(node, source, starts)
    ]


def _left_out(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what no run sees, and expressions in texts, whose places Python 3.11 does not know."""
    for name in ("annotation", "returns"):
        if getattr(node, name, None) is not None:
            yield from ast.walk(getattr(node, name))
    if isinstance(node, ast.JoinedStr):
        yield from ast.walk(node)


def _edits_of(node: ast.AST, source: bytes, starts: list[int]) -> Iterator[_Edit]:
    def start(one: ast.expr | ast.stmt) -> int:
        return starts[one.lineno - 1] + one.col_offset

    def stop(one: ast.expr | ast.stmt) -> int:
        return starts[(one.end_lineno or 0) - 1] + (one.end_col_offset or 0)

    def between(left: ast.expr, right: ast.expr, words: tuple[str, str]) -> Iterator[_Edit]:
        place = source.find(words[0].encode(), stop(left), start(right))
        if place >= 0:
            yield _Edit(place, place + len(words[0]), words[1])

    match node:
        case ast.Compare(left, [operator], [right]):
            yield from between(left, right, _COMPARISONS[type(operator)])
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield from between(left, right, _OPERATORS[type(operator)])
        case ast.BoolOp(operator, [left, right, *_]):
            yield from between(left, right, _OPERATORS[type(operator)])
        case ast.UnaryOp(ast.Not() | ast.USub() as operator):
            # Not up to the operand, which may stand in parentheses.
            yield _Edit(start(node), start(node) + len(_UNARY[type(operator)]), "")
        case ast.Constant(int(value)) if type(value) is int and value < _LARGEST:
            yield _Edit(start(node), stop(node), str(value + 1))
        case ast.Raise() | ast.Expr(ast.Call()):
            yield _Edit(start(node), stop(node), "pass")


def _mutation(root: Path, path: Path, edit: _Edit) -> Mutation:
    """Return the mutation: so many lines around the place that the file holds them once."""
    source = path.read_bytes()
    first = source.rfind(b"\n", 0, edit.start) + 1
    last = (source.find(b"\n", edit.stop) + 1) or len(source)
    line = source.count(b"\n", 0, edit.start) + 1
    while source.count(source[first:last]) > 1:
        first = source.rfind(b"\n", 0, first - 1) + 1
    before = source[first:last].decode()
    after = (source[first : edit.start] + edit.after.encode() + source[edit.stop : last]).decode()
    file = path.relative_to(root)
    old = source[edit.start : edit.stop].decode().split("\n")[0]
    name = f"line {line}: {old[:40].strip()} -> {edit.after or 'nothing'}"
    return Mutation(name, str(file), before, after, mirrored_tests(root, file))


def mirrored_tests(root: Path, file: Path) -> tuple[str, ...]:
    """Return the tests beside which a file's would stand, without those that only compile."""
    folder = Path(*file.parts[:3] if file.parts[0] == "kernels" else file.parts[:2])
    mirrored = root / "tests" / Path(*(part for part in folder.parts if part != "argand"))
    named = mirrored.with_name(f"test_{mirrored.name}")
    found = [named] if named.is_file() else sorted(mirrored.rglob("test_*.py"))
    return tuple(
        str(path.relative_to(root)) for path in found if not path.name.startswith("test_compile")
    )
