"""Subscripts of a contraction: which axes are batches, rows, columns and sums of a product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Subscripts:
    """Labels of the axes of two operands and of their contraction, each a letter.

    ``batch`` labels stand in all three, ``rows`` in the first operand and the result, ``columns``
    in the second and the result, ``sums`` in both operands alone; ``lone_a`` and ``lone_b`` in one
    operand alone, which is summed over them. Each is in the order of the result, or of its operand.
    """

    a: str
    b: str
    result: str
    batch: str
    rows: str
    columns: str
    sums: str
    lone_a: str
    lone_b: str


@lru_cache(maxsize=1024)
def parse(subscripts: str) -> Subscripts:
    """Return the labels of ``"bij,bjk->bik"``; without an arrow the result's are those of einsum.

    Raises ValueError for anything else than two operands of letters, and for a label of the result
    that appears there twice or in no operand.
    """
    operands, arrow, result = subscripts.replace(" ", "").partition("->")
    a, comma, b = operands.partition(",")
    if not comma or not all(x.isascii() and x.isalpha() for x in a + b + result):
        raise ValueError(
            f"subscripts must be letters of two operands, such as 'bij,bjk->bik', "
            f"got {subscripts!r}"
        )
    if not arrow:
        result = "".join(sorted(x for x in _once(a + b) if (a + b).count(x) == 1))
    for label in result:
        if result.count(label) > 1 or label not in a + b:
            raise ValueError(
                f"labels of the result must appear there once and in an operand, got {label!r} in "
                f"{subscripts!r}"
            )

    def those(labels: str, are_taken: Callable[[str], bool]) -> str:
        return "".join(filter(are_taken, labels))

    return Subscripts(
        a, b, result,
        batch=those(result, lambda x: x in a and x in b),
        rows=those(result, lambda x: x not in b),
        columns=those(result, lambda x: x not in a),
        sums=those(_once(a), lambda x: x in b and x not in result),
        lone_a=those(_once(a), lambda x: x not in b + result),
        lone_b=those(_once(b), lambda x: x not in a + result),
    )  # fmt: skip


def sizes_of(
    subscripts: Subscripts, a_shape: tuple[int, ...], b_shape: tuple[int, ...]
) -> dict[str, int]:
    """Return the size of each label. Raises ValueError where shapes do not fit the labels."""
    found: dict[str, int] = {}
    for name, labels, shape in (("a", subscripts.a, a_shape), ("b", subscripts.b, b_shape)):
        if len(labels) != len(shape):
            raise ValueError(f"{name} must have the axes {labels!r}, got shape {shape}")
        for label, size in zip(labels, shape, strict=True):
            if found.setdefault(label, size) != size:
                raise ValueError(
                    f"axis {label!r} must be of one size, got {found[label]} and, in {name}, {size}"
                )
    return found


def _once(labels: str) -> str:
    return "".join(dict.fromkeys(labels))
