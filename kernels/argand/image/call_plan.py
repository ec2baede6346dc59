"""`ImagePlan`: images that are planned once and then only launched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from argand.defaults import Operation
from argand.frameworks.call_plan import CallPlan
from argand.image.api import image
from argand.image.few_antennas_plan import MAX_ANTENNAS
from argand.precision import get_precision

if TYPE_CHECKING:
    from argand.array_types import PrecisionLike
    from argand.runtime.calls.call_cache import CallCache
    from argand.runtime.calls.device_call_plan import DeviceCallPlan
    from argand.runtime.calls.staged_call_plan import StagedCallPlan


class ImagePlan(CallPlan):
    """A call of `argand.image`, planned for arrays like these.

    On a GPU a call of the plan does not wait for it, and a CUDA graph may capture it. So directions
    and covariances are checked there, and no error is raised: towards a direction that is longer
    than 1 or not finite the power is NaN, and so is the image of a covariance that is not
    Hermitian. Positions and frequencies are checked by the call itself.

    Args:
        covariances, positions, frequencies, directions: arrays as later calls have them. On a GPU
            covariances are contiguous complex64 and directions contiguous float64, both there, and
            positions and frequencies NumPy's. Other arguments are those of `argand.image`; a
            precision is a name or a dtype.

    Raises:
        ValueError: as `argand.image`; on a GPU, arrays that a call would convert or copy, and
            precisions that are imaged in blocks there: fp64, and fp32 beyond 24 antennas.
        TypeError: as `argand.image`.

    Example:
        >>> positions = np.array([[0.0, 0, 0], [10.0, 0, 0]])
        >>> directions = np.array([[0.0, 0, 1]])
        >>> covariances = np.ones((1, 2, 2), np.complex64)
        >>> frequencies = np.array([37.5e6])
        >>> plan = argand.ImagePlan(covariances, positions, frequencies, directions)
        >>> plan(covariances, positions, frequencies, directions).round(1)
        array([4.], dtype=float32)
    """

    operation = "image"
    kind: ClassVar[Operation] = "product"
    names: ClassVar[tuple[str, ...]] = ("covariances", "positions", "frequencies", "directions")

    def __init__(
        self,
        covariances: Any,
        positions: Any,
        frequencies: Any,
        directions: Any,
        *,
        precision: PrecisionLike = None,
        sign: int = 1,
    ) -> None:
        super().__init__(
            (covariances, positions, frequencies, directions),
            {"precision": precision, "sign": sign},
        )

    def __call__(
        self,
        covariances: Any,
        positions: Any,
        frequencies: Any,
        directions: Any,
        *,
        out: Any = None,
    ) -> Any:
        """Return the power, in ``out`` where it is given; arguments as in `argand.image`.

        Raises ValueError where an operand, or ``out``, has not the planned form, on a GPU where
        ``out`` overlaps an operand, and for positions and frequencies as `argand.image`.
        """
        every = covariances, positions, frequencies, directions, out
        found = self._start(every)
        return self._otherwise(every) if found is None else found

    def _planned(self, arrays: tuple[Any, ...]) -> DeviceCallPlan | StagedCallPlan:
        row, antennas = get_precision(self._precision), arrays[0].shape[-1]
        few = antennas <= MAX_ANTENNAS and row.real_output == "float32"
        if row.exact_operands and not few:
            raise ValueError(
                f"images of {antennas} antennas at {row.name} have no plan on a GPU, which makes "
                "them in blocks of directions; use argand.image"
            )
        from argand.image.gpu import RepeatedImage
        from argand.runtime.calls.device_call_plan import DeviceCallPlan

        def queued(run: RepeatedImage) -> Any:
            return run.without_wait

        return DeviceCallPlan(self._cache(), self._call, arrays, queued)

    def _default_of(self, arrays: tuple[Any, ...]) -> str:
        return super()._default_of(arrays[:1])

    def _call(self, *arrays: Any, out: Any = None) -> Any:
        return image(*arrays, out=out, **self._arguments)

    def _cache(self) -> CallCache:
        from argand.image.gpu import CALLS

        return CALLS
