"""The types of argand's public names, ``kernels/argand/__init__.pyi``, from their signatures.

At run time operands are of any library, which an annotation can say in overloads alone: NumPy's
arrays give NumPy's, another library's give its own. A plan gives arrays of the library that it was
planned for. Everything else is as the code has it.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from textwrap import indent, wrap
from typing import Any

import argand
from argand.frameworks.call_plan import CallPlan

PACKAGE = Path(argand.__file__).parent
FIRST = ("a", "covariances", "r", "state", "weights", "x", "array")
"""Parameters whose library the result has."""
OTHERS = ("b", "bias", "c", "directions", "frequencies", "info", "matrix", "out", "positions",
          "reference", "samples", "scale", "window")  # fmt: skip
"""Further ones that are arrays."""
OF_TYPING = ("Array", "ArrayT", "GateLike", "Observable", "Operand", "PrecisionLike", "TensorType")
_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_STRING = re.compile(r"(['\"]).*?\1")
RESULT = '_ResultT = TypeVar("_ResultT", default=Any)\n'
"""The type variable of what calls of a plan return."""
HEADER = '''"""Written by python -m tools.docs from the signatures of the public names."""

'''


def stub() -> str:
    """Return the text of the file."""
    texts, imports = [], {"argand.typing": set(OF_TYPING), "typing": {"Any", "overload"}}
    imports["numpy.typing"] = {"NDArray"}
    for name in argand.__all__:
        found = getattr(argand, name)
        if inspect.isfunction(found) and _operands(found):
            texts += _function(name, found, imports)
        elif inspect.isclass(found) and issubclass(found, CallPlan):
            texts.append(_plan(name, found, imports))
        elif inspect.isclass(found) or inspect.isfunction(found):
            imports.setdefault(found.__module__, set()).add(f"{name} as {name}")
        else:
            imports.setdefault(_home(name, "argand"), set()).add(f"{name} as {name}")
    lines = [
        f"from {module} import "
        f"{', '.join(sorted(one for one in names if f'{one} as {one}' not in names))}\n"
        for module, names in sorted(imports.items())
    ]
    listed = _listed(f'"{name}"' for name in argand.__all__)
    head = f"{HEADER}{''.join(lines)}\n{RESULT}__version__: str\n__all__ = [\n{listed}\n]\n\n"
    return head + "\n".join(texts)


def _operands(function: Any) -> list[str]:
    """Return the parameters that are arrays, the first one's library being the result's."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.name in FIRST and p.annotation == "Any"]


def _function(name: str, function: Any, imports: dict[str, set[str]]) -> list[str]:
    """Return its declaration, or the overloads of one that returns its operand's kind of array."""
    returned = str(inspect.signature(function).return_annotation)
    if returned != "Any":
        words = _words(function, "Operand", imports, closed=False)
        _note(returned, function, imports)
        return [_declared(name, words, returned)]
    return [f"@overload\n{_declared(name, *one)}" for one in _overloads(function, imports)]


def _plan(name: str, plan: Any, imports: dict[str, set[str]]) -> str:
    """Return the declaration of a plan, by whose operands the type of a call's result is known."""
    (base,) = plan.__bases__
    imports.setdefault(base.__module__, set()).add(base.__name__)
    imports["typing"].add("Generic")
    imports["typing_extensions"] = {"TypeVar"}
    lines = [f"class {name}({base.__name__}, Generic[_ResultT]):\n"]
    for words, result in _overloads(plan.__init__, imports):
        words[0] = f"self: {name}[{result}]"
        lines.append(indent(f"@overload\n{_declared('__init__', words, 'None')}", "    "))
    words = _words(plan.__call__, "Operand", imports, closed=False)
    lines.append(indent(_declared("__call__", words, "_ResultT"), "    "))
    return "".join(lines)


def _overloads(function: Any, imports: dict[str, set[str]]) -> list[tuple[list[str], str]]:
    """Return the parameters and the result of each overload."""
    kinds = [("NDArray[Any]", "NDArray[Any]"), ("ArrayT", "ArrayT"), ("Operand", "Any")]
    return [
        (_words(function, operand, imports, closed=result != "Any"), result)
        for operand, result in kinds
    ]


def _declared(name: str, words: list[str], result: str) -> str:
    return f"def {name}(\n{_listed(words)}\n) -> {result}: ...\n"


def _listed(words: Iterable[str]) -> str:
    """Return indented lines of words with commas between, none of which is broken."""
    whole = ", ".join(word.replace(" ", _NO_BREAK) for word in words)
    lines = wrap(whole, 92, break_long_words=False, break_on_hyphens=False)
    return indent("\n".join(lines), "    ").replace(_NO_BREAK, " ")


def _words(function: Any, operand: str, imports: dict[str, set[str]], *, closed: bool) -> list[str]:
    """Return parameters, with what they name imported; the first array is an ``operand``.

    ``closed`` leaves out results that are not arrays of the operand's library.
    """
    words, first = [], _operands(function)[0]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        annotation = str(parameter.annotation)
        if parameter.name == "self":
            words.append("self")
            continue
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
    for word in words[1:] if words[0] == "self" else words:
        _note(word, function, imports)
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
    """Return the module that defines a name which ``module`` has, or imports."""
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
