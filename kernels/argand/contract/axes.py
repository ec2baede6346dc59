"""Axes of an array put in order and merged, by views where its strides allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple

from argand.contract.subscripts import Subscripts


def merged(x: Any, labels: str, groups: Sequence[str], leading: str) -> Any:
    """Return x with the axes ``leading`` and one axis for each group of labels."""
    order = [labels.index(label) for label in (*leading, *"".join(groups))]
    ordered = transposed(x, order)
    if all(len(group) == 1 for group in groups):
        return ordered
    shape, at = list(ordered.shape[: len(leading)]), len(leading)
    for group in groups:
        shape.append(math.prod(ordered.shape[at : at + len(group)]))
        at += len(group)
    return ordered.reshape(tuple(shape))


def transposed(x: Any, order: Sequence[int]) -> Any:
    """Return a view with the axes in this order."""
    if list(order) == list(range(x.ndim)):
        return x
    return x.permute(*order) if hasattr(x, "permute") else x.transpose(tuple(order))


class Axes(NamedTuple):
    """Labels, lengths and strides of an array; strides in any unit, None where it has none."""

    labels: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None

    @property
    def size(self) -> int:
        """Elements of the array."""
        return math.prod(self.shape)


def axes_of(x: Any, labels: str) -> Axes:
    """Return the axes of an array; JAX's have no strides."""
    strides = x.strides if hasattr(x, "strides") else x.stride() if hasattr(x, "stride") else None
    return Axes(labels, tuple(x.shape), strides)


def merges(x: Axes, group: str) -> bool:
    """Return whether the axes of a group are one axis in memory, in this order."""
    if x.strides is None or len(group) < 2:
        return True
    axes = [x.labels.index(label) for label in group]
    axes = [axis for axis in axes if x.shape[axis] != 1]
    return all(
        x.strides[outer] == x.shape[inner] * x.strides[inner] for outer, inner in pairwise(axes)
    )


@lru_cache(maxsize=1024)
def best_orders(found: Subscripts, a: Axes, b: Axes, out: Axes | None) -> tuple[str, str, str]:
    """Return rows, columns and sums in the orders with which the fewest elements are copied."""
    choices = (
        _orders(found.rows, a.labels, found.result), _orders(found.columns, b.labels, found.result),
        _orders(found.sums, a.labels, b.labels),
    )  # fmt: skip

    def copied(orders: tuple[str, ...]) -> int:
        rows, columns, sums = orders
        used = ((a, (rows, sums)), (b, (sums, columns)), (out, (rows, columns)))
        return sum(
            x.size
            for x, groups in used
            if x is not None and not all(merges(x, group) for group in groups)
        )

    all_orders = list(product(*choices))
    sizes = [copied(orders) for orders in all_orders]
    rows, columns, sums = all_orders[sizes.index(min(sizes))]  # torch traces no min with a key
    return rows, columns, sums


def _orders(group: str, *places: str) -> list[str]:
    """Return the orders in which a group's labels stand in these places."""
    return list(dict.fromkeys("".join(x for x in place if x in group) for place in places))
