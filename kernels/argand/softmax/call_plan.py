"""`SoftmaxPlan`: softmaxes that are planned once and then only launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from argand import defaults
from argand.checks import check_one_of
from argand.frameworks.call_plan import OneArrayPlan
from argand.frameworks.rules import FrameworkRules
from argand.softmax.api import FUNCTIONS, RULES
from argand.softmax.formats import OPERATIONS, Operation

if TYPE_CHECKING:
    from argand.array_types import PrecisionLike
    from argand.runtime.calls.call_cache import CallCache
    from argand.runtime.plans.tuned_plans import TunedPlans


class SoftmaxPlan(OneArrayPlan):
    """A call of `argand.softmax`, `log_softmax` or `logsumexp`, planned for arrays like this one.

    Args:
        x: an array as later calls have it. Other arguments are those of `argand.softmax`; a
            precision is a name or a dtype. On a GPU, along another axis than the last, calls copy
            x into memory of the plan first.
        function: softmax, log_softmax or logsumexp.

    Raises:
        ValueError: as `argand.softmax`; an unknown function, an array that a GPU's kernels cannot
            read in place.
        TypeError: as `argand.softmax`.

    Example:
        >>> x = np.zeros((1, 4), np.float32)
        >>> argand.SoftmaxPlan(x)(x)
        array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """

    operation = "softmax"
    kind: ClassVar[defaults.Operation] = "softmax"
    rules: ClassVar[FrameworkRules | None] = RULES["softmax"]

    def __init__(
        self,
        x: Any,
        axis: int = -1,
        *,
        function: Operation = "softmax",
        precision: PrecisionLike = None,
        rounding: Sequence[str] | str | None = None,
        scale: float = 1.0,
        power: bool = False,
        format: str | None = None,
        output: str | None = None,
    ) -> None:
        check_one_of("function", function, OPERATIONS)
        super().__init__((x,), {
            "axis": axis, "function": function, "precision": precision, "rounding": rounding,
            "scale": scale, "power": power, "format": format, "output": output,
        })  # fmt: skip

    def _function(self, x: Any, **arguments: Any) -> Any:
        # A call that names no precision takes that of its out, which may be narrower than x.
        arguments["precision"] = self._precision
        return FUNCTIONS[arguments.pop("function")](x, **arguments)

    def _cache(self) -> CallCache:
        from argand.softmax.gpu import CALLS

        return CALLS

    @classmethod
    def _table(cls) -> TunedPlans[Any]:
        from argand.softmax.tuned import TABLE

        return TABLE
