"""Axes of an array put in order and merged, by views where its strides allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

from argand.contract.subscripts import Subscripts


def merged(x: Any, labels: str, groups: Sequence[str], leading: str) -> Any:
    """Return x with the axes ``leading`` and one axis for each group of labels."""
    order = [labels.index(label) for label in (*leading, *"".join(groups))]
    turned = transposed(x, order)
    if all(len(group) == 1 for group in groups):
        return turned
    shape, at = list(turned.shape[: len(leading)]), len(leading)
    for group in groups:
        shape.append(math.prod(turned.shape[at : at + len(group)]))
        at += len(group)
    return turned.reshape(tuple(shape))


def transposed(x: Any, order: Sequence[int]) -> Any:
    """Return a view with the axes in this order."""
    if list(order) == list(range(x.ndim)):
        return x
    return x.permute(*order) if hasattr(x, "permute") else x.transpose(tuple(order))


def merges(x: Any, labels: str, group: str) -> bool:
    """Whether the axes of a group are one axis in memory, in this order."""
    strides = _strides(x)
    if strides is None:
        return True
    axes = [labels.index(label) for label in group]
    axes = [axis for axis in axes if x.shape[axis] != 1]
    return all(strides[outer] == x.shape[inner] * strides[inner] for outer, inner in pairwise(axes))


def _strides(x: Any) -> Any:
    """Return the strides of an array in any unit; None where it has none, as JAX's do not."""
    if hasattr(x, "strides"):
        return x.strides
    return x.stride() if hasattr(x, "stride") else None


def best_orders(
    found: Subscripts, a: Any, labels_a: str, b: Any, labels_b: str, out: Any
) -> tuple[str, str, str]:
    """Return rows, columns and sums in the orders with which the fewest elements are copied."""
    choices = (
        _orders(found.rows, labels_a, found.result), _orders(found.columns, labels_b, found.result),
        _orders(found.sums, labels_a, labels_b),
    )  # fmt: skip

    def copied(orders: tuple[str, ...]) -> int:
        rows, columns, sums = orders
        total = 0
        for x, labels, groups in (
            (a, labels_a, (rows, sums)), (b, labels_b, (sums, columns)),
            (out, found.result, (rows, columns)),
        ):  # fmt: skip
            if x is not None and not all(merges(x, labels, group) for group in groups):
                total += math.prod(x.shape)
        return total

    rows, columns, sums = min(product(*choices), key=copied)
    return rows, columns, sums


def _orders(group: str, *places: str) -> list[str]:
    """Return the orders in which a group's labels stand in these places."""
    return list(dict.fromkeys("".join(x for x in place if x in group) for place in places))
