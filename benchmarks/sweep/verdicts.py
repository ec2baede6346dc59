"""The verdict on a result whose error is known over its bound."""

from __future__ import annotations

from workflow.accuracy import Accuracy


def by_bound(
    worst: float, error: float, rows: int, what: str, *, reference: str = "sampled"
) -> Accuracy:
    """Return the accuracy of ``rows`` that were compared.

    Args:
        worst: the largest error over its bound.
        error: the relative one of all of them.
        what: what is off, as the reason has it where ``worst`` is above 1.
    """
    right = worst <= 1
    return Accuracy(
        rel_frobenius=error, ratio=1 / worst if worst else None,
        verdict="verified" if right else "wrong", verified=right,
        reason="" if right else f"{what} is {worst:.3g} times its bound",
        reference=reference, reference_rows=rows,
    )  # fmt: skip
