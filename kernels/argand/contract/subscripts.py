"""Subscripts of a contraction: which axes are batches, rows, columns and sums of a product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache


@dataclass(frozen=True)
class Subscripts:
    """Labels of the axes of two operands and of their contraction, each a letter.

    ``batch`` labels stand in all three, ``rows`` in the first operand and the result, ``columns``
    in the second and the result, ``sums`` in both operands alone; ``lone_a`` and ``lone_b`` in one
    operand alone, which is summed over them. Each is in the order of the first of its places.
    """

    a: str
    b: str
    result: str

    @cached_property
    def batch(self) -> str:
        """Labels of leading axes, in the order of the result."""
        return "".join(x for x in self.result if x in self.a and x in self.b)

    @cached_property
    def rows(self) -> str:
        """Labels of rows of the product."""
        return "".join(x for x in self.result if x not in self.b)

    @cached_property
    def columns(self) -> str:
        """Labels of columns of the product."""
        return "".join(x for x in self.result if x not in self.a)

    @cached_property
    def sums(self) -> str:
        """Labels that the product sums over."""
        return "".join(x for x in _once(self.a) if x in self.b and x not in self.result)

    @cached_property
    def lone_a(self) -> str:
        """Labels of the first operand alone."""
        return "".join(x for x in _once(self.a) if x not in self.b + self.result)

    @cached_property
    def lone_b(self) -> str:
        """Labels of the second operand alone."""
        return "".join(x for x in _once(self.b) if x not in self.a + self.result)


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
    return Subscripts(a, b, result)


def sizes_of(labels: str, shape: tuple[int, ...], name: str, known: dict[str, int]) -> None:
    """Add the size of each label to ``known``. Raises ValueError where they do not fit."""
    if len(labels) != len(shape):
        raise ValueError(f"{name} must have the axes {labels!r}, got shape {shape}")
    for label, size in zip(labels, shape, strict=True):
        if known.setdefault(label, size) != size:
            raise ValueError(
                f"axis {label!r} must be of one size, got {known[label]} and, in {name}, {size}"
            )


def _once(labels: str) -> str:
    return "".join(dict.fromkeys(labels))
