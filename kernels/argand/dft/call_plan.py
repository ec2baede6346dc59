"""`DftPlan`: transforms that are planned once and then only launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from argand.defaults import Operation
from argand.dft.api import dft
from argand.frameworks.call_plan import OneArrayPlan

if TYPE_CHECKING:
    from argand.array_types import PrecisionLike
    from argand.runtime.calls.call_cache import CallCache
    from argand.runtime.plans.tuned_plans import TunedPlans


class DftPlan(OneArrayPlan):
    """A call of `argand.dft`, planned for arrays like this one.

    Args:
        x: an array as later calls have it. Other arguments are those of `argand.dft`; a precision
            is a name or a dtype. On a GPU, along another axis than the last and for an ``n`` that
            is not the axis's length, calls copy x into memory of the plan first.

    Raises:
        ValueError: as `argand.dft`; an array that a GPU's kernels cannot read in place.
        TypeError: as `argand.dft`.

    Example:
        >>> x = np.ones((2, 8), np.complex64)
        >>> argand.DftPlan(x)(x).shape
        (2, 8)
    """

    operation = "dft"
    kind: ClassVar[Operation] = "transform"

    def __init__(
        self,
        x: Any,
        axis: int = -1,
        *,
        n: int | None = None,
        inverse: bool = False,
        norm: str = "backward",
        precision: PrecisionLike = None,
        rounding: Sequence[str] | str | None = None,
    ) -> None:
        super().__init__((x,), {
            "axis": axis, "n": n, "inverse": inverse, "norm": norm, "precision": precision,
            "rounding": rounding,
        })  # fmt: skip

    def _function(self, x: Any, **arguments: Any) -> Any:
        return dft(x, **arguments)

    def _cache(self) -> CallCache:
        from argand.dft.gpu import CALLS

        return CALLS

    @classmethod
    def _table(cls) -> TunedPlans[Any]:
        from argand.dft.tuned import TABLE

        return TABLE
