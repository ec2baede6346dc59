"""The types of argand's public names, ``kernels/argand/__init__.pyi``, from their signatures.

At run time operands are of any library, which an annotation can say in overloads alone: NumPy's
arrays give NumPy's, another library's give its own. Everything else is as the code has it.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import argand

PACKAGE = Path(argand.__file__).parent
FIRST = ("a", "covariances", "r", "state", "weights", "x", "array")
"""Parameters whose library the result has."""
OTHERS = ("b", "bias", "c", "directions", "frequencies", "info", "matrix", "out", "positions",
          "reference", "samples", "window")  # fmt: skip
"""Further ones that are arrays."""
OF_TYPING = ("Array", "ArrayT", "Operand", "PrecisionLike")
_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_STRING = re.compile(r"(['\"]).*?\1")
HEADER = '''"""Written by python -m tools.docs from the signatures of the public names."""

'''


def stub() -> str:
    """The text of the file."""
    texts, imports = [], {"argand.typing": set(OF_TYPING), "typing": {"Any", "overload"}}
    imports["numpy.typing"] = {"NDArray"}
    for name in argand.__all__:
        found = getattr(argand, name)
        if inspect.isfunction(found) and _operands(found):
            texts += _function(name, found, imports)
        elif inspect.isclass(found) or inspect.isfunction(found):
            imports.setdefault(found.__module__, set()).add(f"{name} as {name}")
        else:
            imports.setdefault(_home(name, "argand"), set()).add(f"{name} as {name}")
    lines = [
        f"from {module} import "
        f"{', '.join(sorted(one for one in names if f'{one} as {one}' not in names))}\n"
        for module, names in sorted(imports.items())
    ]
    listed = "".join(f'    "{name}",\n' for name in argand.__all__)
    return f"{HEADER}{''.join(lines)}\n__version__: str\n__all__ = [\n{listed}]\n\n" + "\n".join(
        texts
    )


def _operands(function: Any) -> list[str]:
    """The parameters that are arrays, the first one's library being the result's."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.name in FIRST and p.annotation == "Any"]


def _function(name: str, function: Any, imports: dict[str, set[str]]) -> list[str]:
    """Its declaration, or the overloads of one that returns an array of its operand's library."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    returned = str(signature.return_annotation)
    first = _operands(function)[0]
    if returned != "Any":
        overloads = [("Operand", returned)]
    else:
        overloads = [("NDArray[Any]", "NDArray[Any]"), ("ArrayT", "ArrayT"), ("Operand", "Any")]
    texts = []
    for operand, result in overloads:
        words = _words(parameters, first, operand, closed=len(overloads) > 1 and result != "Any")
        for text in (*words, returned):
            _note(text, function, imports)
        head = "@overload\n" if len(overloads) > 1 else ""
        listed = "".join(f"    {word},\n" for word in words)
        texts.append(f"{head}def {name}(\n{listed}) -> {result}: ...\n")
    return texts


def _words(
    parameters: list[inspect.Parameter], first: str, operand: str, *, closed: bool
) -> list[str]:
    """Parameters; ``closed`` leaves out results that are not arrays of the operand's library."""
    words = []
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        annotation = str(parameter.annotation)
        if parameter.name == first:
            annotation = operand
        elif parameter.name in OTHERS and annotation == "Any":
            annotation = "Operand | None" if parameter.default is None else "Operand"
        elif parameter.name == "precision":
            annotation = "PrecisionLike"
        elif closed and (parameter.name, annotation) == ("output", "Output | None"):
            annotation = 'Literal["complex64", "complex128"] | None'
        elif closed and parameter.name == "details":
            annotation = "Literal[False]"
        given = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        words.append(f"{parameter.name}: {annotation}{given}")
    return words


def _note(text: str, function: Any, imports: dict[str, set[str]]) -> None:
    """Import what an annotation names, from where it is defined."""
    annotation = _STRING.sub("", text.partition(": ")[2].partition(" = ")[0] or text)
    module = inspect.unwrap(function).__module__
    for name in _NAME.findall(annotation):
        if name in OF_TYPING or hasattr(builtins, name) or name == "NDArray":
            continue
        home = _home(name, module)
        imports.setdefault(home, set()).add(name)


def _home(name: str, module: str) -> str:
    """The module that defines a name which ``module`` has, or imports."""
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.ImportFrom) and name in [one.name for one in node.names]:
            inside = node.module is not None and node.module.startswith("argand")
            return _home(name, str(node.module)) if inside else str(node.module)
    return module if name in _assigned(module) else "typing"


def _assigned(module: str) -> set[str]:
    nodes = _parsed(module).body
    targets = [one for node in nodes if isinstance(node, ast.Assign) for one in node.targets]
    targets += [node.target for node in nodes if isinstance(node, ast.AnnAssign)]
    named = {target.id for target in targets if isinstance(target, ast.Name)}
    return named | {node.name for node in nodes if isinstance(node, ast.ClassDef)}


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(Path(str(importlib.import_module(module).__file__)).read_text("utf-8"))
