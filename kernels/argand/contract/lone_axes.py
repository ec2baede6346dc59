"""Sums over axes that one operand of a contraction has alone."""

from __future__ import annotations

from typing import Any

from argand.contract.libraries import converted, kind_of, namespace, type_like


def reduced(x: Any, labels: str, lone: str, *, double: bool) -> tuple[Any, str]:
    """Return an operand without repeated labels and without those that it alone has.

    ``double`` says that fp64 is among the data or is asked for.
    """
    repeated = dict.fromkeys(labels) if len(set(labels)) < len(labels) else ()
    for label in repeated:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = x.diagonal(0, first, second)  # the new axis is the last
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    if lone:
        x = _summed(x, tuple(labels.index(label) for label in lone), double)
    return x, "".join(label for label in labels if label not in lone)


def _summed(x: Any, axes: tuple[int, ...], double: bool) -> Any:
    """Return sums in fp32 or fp64: those of 16 bits would overflow, and those of integers wrap.

    Integers are added in fp64, where the library has it, and make no product one of fp64.
    """
    least = type_like(x, "float", double=double)
    if kind_of(x.dtype) in "fcV":  # V: JAX's bfloat16
        return x.sum(axis=axes, dtype=namespace(x).promote_types(x.dtype, least))
    return converted(x.sum(axis=axes, dtype=type_like(x, "float", double=True)), least)
