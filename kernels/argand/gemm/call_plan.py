"""`GemmPlan`: a product that is planned once and then only launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from argand.defaults import Operation
from argand.frameworks.call_plan import CallPlan
from argand.frameworks.rules import FrameworkRules
from argand.gemm.api import gemm
from argand.gemm.families import Family
from argand.gemm.operands import Op
from argand.gemm.pairs import Pairs
from argand.gemm.problem import Output
from argand.gemm.rules import RULES

if TYPE_CHECKING:
    from argand.array_types import PrecisionLike
    from argand.runtime.calls.call_cache import CallCache
    from argand.runtime.calls.device_call_plan import DeviceCallPlan
    from argand.runtime.calls.staged_call_plan import StagedCallPlan
    from argand.runtime.plans.tuned_plans import TunedPlans


class GemmPlan(CallPlan):
    """A call of `argand.gemm`, planned for operands like these.

    Args:
        a, b, c: operands as later calls have them: arrays, `Pairs` or `Packed`; c None where there
            is none. Other arguments are those of `argand.gemm`; a precision is a name or a dtype.

    Raises:
        ValueError: as `argand.gemm`; operands that a GPU's kernels cannot read in place;
            on a GPU output ``power`` without kernels ``wgmma``.
        TypeError: as `argand.gemm`.

    Example:
        >>> a = np.ones((4, 3), np.complex64)
        >>> plan = argand.GemmPlan(a, a, op_b="C", precision="tf32")
        >>> plan(a, a).shape
        (4, 4)
    """

    operation = "gemm"
    kind: ClassVar[Operation] = "product"
    pairs: ClassVar[type | None] = Pairs
    rules: ClassVar[FrameworkRules | None] = RULES
    names: ClassVar[tuple[str, ...]] = ("a", "b", "c")

    def __init__(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        *,
        alpha: complex = 1,
        beta: complex = 0,
        op_a: Op = "N",
        op_b: Op = "N",
        precision: PrecisionLike = None,
        tolerance: float | None = None,
        rounding: Sequence[str] | str | None = None,
        output: Output | None = None,
        kernels: Family | None = None,
    ) -> None:
        super().__init__((a, b, c), {
            "alpha": alpha, "beta": beta, "op_a": op_a, "op_b": op_b, "precision": precision,
            "tolerance": tolerance, "rounding": rounding, "output": output, "kernels": kernels,
        })  # fmt: skip

    def __call__(self, a: Any, b: Any, c: Any = None, *, out: Any = None) -> Any:
        """Return the product, in ``out`` where it is given; arguments as in `argand.gemm`.

        Raises ValueError where an operand, or ``out``, has not the planned form, and on a GPU where
        ``out`` overlaps an operand.
        """
        found = self._start((a, b, c, out))
        return self._otherwise((a, b, c, out)) if found is None else found

    def _planned(self, arrays: tuple[Any, ...]) -> DeviceCallPlan | StagedCallPlan:
        if self.options["output"] == "power" and self.options["kernels"] != "wgmma":
            raise ValueError(
                "a plan of output='power' needs kernels='wgmma', which square in the product, "
                f"got kernels={self.options['kernels']!r}; argand.gemm squares in a second pass"
            )
        return super()._planned(arrays)

    def _call(self, *arrays: Any, out: Any = None) -> Any:
        a, b, c = arrays
        return gemm(a, b, c, out=out, **self._arguments)

    def _cache(self) -> CallCache:
        from argand.gemm.gpu_calls import CALLS

        return CALLS

    @classmethod
    def _table(cls) -> TunedPlans[Any]:
        from argand.gemm.tuned import TABLE

        return TABLE
