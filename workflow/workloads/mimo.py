"""Equalisers of many antennas: symbols from what receivers got, for each subcarrier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Precision, gemm, solve_hermitian
from argand.device import array_module
from argand.hermitian.plan import LARGEST_N

from workflow import qam
from workflow.accuracy import Accuracy
from workflow.accuracy.mimo_accuracy import MimoReference, assess_mimo, mimo_reference
from workflow.config.case import Case
from workflow.config.mimo_case import MimoCase
from workflow.data import Array, Coordinate, Product, Staged, along, blank
from workflow.figures import pictures
from workflow.figures.symbol_pictures import draw_symbols
from workflow.files.input_error import InputError
from workflow.files.units import squared
from workflow.implementation import Implementation, Shape
from workflow.inputs import operand_values, operands
from workflow.inputs.operands import Operand
from workflow.storage.noise import complex_normal
from workflow.workloads import symbol_bits
from workflow.workloads.base import NOTHING, Workload, log_uniform, register
from workflow.workloads.baselines import implementations
from workflow.workloads.error_curves import curves_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from workflow.records import Record

CHANNEL = Operand(
    "channel", ("time", "frequency", "receiver", "transmitter"), amplitudes=True
)  # fmt: skip
RECEIVED = ("snr", "time", "frequency", "receiver", "symbol")
AXES = ("snr", "time", "frequency", "transmitter", "symbol")
"""Axes of the symbols."""
BIT_AXES = (*AXES, "bit")
SENT = ("time", "frequency", "transmitter", "symbol")


@register
class Mimo(Workload):
    """Zero forcing and least mean square errors, a system a subcarrier."""

    kind: ClassVar[str] = "mimo"
    caption: ClassVar[str] = (
        "Bit error rate over the signal-to-noise ratio at each precision, and of symbols the error "
        "vector magnitude, dashed. "
        "Where no bit is wrong the rate is drawn at half an error. A curve that becomes flat is "
        "limited by the channel's condition or by the arithmetic, not by noise."
    )
    case_type: ClassVar[type[Case]] = MimoCase
    small: ClassVar[Mapping[str, Any]] = {
        "receivers": 8, "transmitters": 2, "subcarriers": 3, "symbols": 5, "snr_db": [5.0, 20.0],
    }  # fmt: skip
    common: ClassVar[Mapping[str, Any]] = {
        "receivers": 16, "transmitters": 8, "subcarriers": 128, "symbols": 64,
    }  # fmt: skip
    splits: ClassVar[tuple[str, ...]] = ("frequency", "time")
    reference_copies: ClassVar[float] = 4.0
    case: MimoCase

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        transmitters = log_uniform(rng, 1, 12)
        return {
            "transmitters": transmitters, "receivers": 4 * transmitters,
            "subcarriers": int(rng.integers(1, 5)), "symbols": log_uniform(rng, 1, 24),
            "snr_db": [10.0], "qam": int(rng.choice(qam.ORDERS)),
            "equaliser": str(rng.choice(["zf", "lmmse"])),
        }  # fmt: skip

    def split_axes(self, axes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return frequency and time; none for bits: the noise of soft ones is that of all."""
        return () if self.case.makes_bits else self.splits

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError where the channel has too many transmitters, or too few receivers."""
        if self.case.input is None:
            return
        shape = operands.outline(self.case.input, (CHANNEL,), upstream).operands["channel"].shape
        if not 1 <= shape[3] <= min(shape[2], LARGEST_N):
            raise InputError(
                f"input.channel must have from 1 to {LARGEST_N} transmitters, and no fewer "
                f"receivers, got {shape[2]} receivers and {shape[3]} transmitters; it is read as "
                f"({', '.join(CHANNEL.axes)}), for another order name the axes in input.axes"
            )

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands channel and received, complex64 where simulated.

        Symbols that were sent stand beside them.
        """
        case = self.case
        if case.input is not None:
            found = self.staged_input((CHANNEL,), upstream).held()
            operand_values.refuse_zeros(found, CHANNEL.name)
        else:
            found = replace(
                self._outlined(), operands={"channel": self._channel()},
                attributes={"seed": self.seed},
            )  # fmt: skip
        h = found.operands["channel"]
        numbers = self.rng(1).integers(0, case.qam, (*h.shape[:2], h.shape[3], case.symbols))
        symbols = qam.modulated(numbers, case.qam).astype(np.complex64)
        arriving = h.astype(np.complex64, copy=False) @ symbols
        power, used = np.square(np.abs(h)).sum(axis=-1), h.any(axis=(2, 3))
        noise = self._noise(float(power[used].mean()))
        shape = (len(noise), *arriving.shape)
        own = complex_normal(self.rng(2), shape)
        own *= np.sqrt(noise).astype(np.float32).reshape(-1, 1, 1, 1, 1)
        return self._with_symbols(
            found, arriving + own, numbers.astype(np.uint16), noise
        )  # fmt: skip

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        given = self.case.input
        found = operands.outline(given, (CHANNEL,), upstream) if given else self._outlined()
        times, subcarriers, receivers, transmitters = found.operands["channel"].shape
        each, ratios = self.case.symbols, len(self.case.snr_db)
        return self._with_symbols(
            found, blank((ratios, times, subcarriers, receivers, each), np.complex64),
            blank((times, subcarriers, transmitters, each), np.uint16), blank((ratios,), float),
        )  # fmt: skip

    def _outlined(self) -> Staged:
        case = self.case
        shape = (case.packets, case.subcarriers, case.receivers or 0, case.transmitters or 0)
        return Staged({"channel": blank(shape, np.complex64)}, {"channel": CHANNEL.axes})

    def _channel(self) -> Array:
        """Return the paths of complex normal gains, the later ones weaker, over subcarriers."""
        case = self.case
        count = case.subcarriers
        power = 0.5 ** np.arange(case.paths)
        shape = (case.packets, case.paths, case.receivers or 0, case.transmitters or 0)
        gains = complex_normal(self.rng(0), shape).astype(complex)
        gains *= np.sqrt(power / power.sum())[:, None, None]
        turns = np.outer(np.arange(count), np.arange(case.paths)) / max(count, case.paths)
        found = np.einsum("fp,tprs->tfrs", np.exp(-2j * np.pi * turns), gains)
        return np.asarray(found, np.complex64)

    def _noise(self, arriving: float) -> Array:
        return np.asarray(arriving * 10.0 ** (-np.asarray(self.case.snr_db) / 10))

    def _with_symbols(self, found: Staged, received: Array, numbers: Array, noise: Array) -> Staged:
        ratios = np.asarray(self.case.snr_db)
        return replace(
            found,
            operands={**found.operands, "received": received},
            axes={**found.axes, "received": RECEIVED},
            coordinates={
                **found.coordinates,
                "snr": Coordinate(ratios, "dB", "signal-to-noise ratio of a receiver"),
                "noise_power": Coordinate(
                    noise,
                    squared(found.units.get("channel", "")),
                    "mean power of a receiver's noise",
                    ("snr",),
                ),
                "sent": Coordinate(numbers, "", "number of the symbol sent", SENT),
            },
        )

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (snr, time, frequency, transmitter, symbol)."""
        h, y = (outline.operands[name].shape for name in ("channel", "received"))
        return (*y[:3], h[3], y[4])

    def intermediate_bytes(self, outline: Staged) -> int:
        """Return the systems H^H H + s I, one for each signal-to-noise ratio and channel."""
        h, y = (outline.operands[name].shape for name in ("channel", "received"))
        return int(16 * np.prod(y[:3], dtype=object) * h[3] ** 2)

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return for each system 8 n^2 k of products, 4/3 n^3, 8 n k and 8 n^2 a column."""
        h, y = (staged.operands[name] for name in ("channel", "received"))
        k, n = h.shape[2:]
        systems, columns = int(np.prod(y.shape[:3])), y.shape[-1]
        values = h.size + y.size + systems * n * columns
        each = 4 / 3 * n**3 + 8.0 * (n * k + n**2) * columns
        return Shape(
            flops=8.0 * n**2 * k * h.shape[0] * h.shape[1] + systems * each,
            bytes_moved=float(values * operands.complex_bytes(precision)),
            batch=systems, m=n, n=columns, k=k,
        )  # fmt: skip

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.gemm` and `argand.solve_hermitian`."""
        return Implementation.ours(
            precision, f"{precision.name} products, Cholesky in {precision.output}",
            partial(
                self._equalised, partial(gemm, precision=precision.name, op_a="C"), _solved,
                self._load(staged),
            ),
            partial(_cast, precision=precision),
        )  # fmt: skip

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, PyTorch's solver on a GPU, with products of NumPy or CuPy."""

        def multiply(a: Any, b: Any) -> Any:
            return a.conj().swapaxes(-1, -2) @ b

        def call(solve: Callable[..., Any], given: Mapping[str, Any]) -> Any:
            return self._equalised(multiply, solve, self._load(staged), given)

        return implementations(self.case, device, "hermitian", call, _cast)

    def _load(self, staged: Staged) -> Array:
        noise = np.asarray(staged.coordinates["noise_power"].values, float)
        return noise if self.case.equaliser == "lmmse" else np.zeros_like(noise)

    def _equalised(
        self, multiply: Callable[..., Any], solve: Callable[..., Any], load: Array,
        given: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        h, y = given["channel"], given["received"]
        arrays, n = array_module(h), h.shape[-1]
        g = arrays.repeat(multiply(h, h)[None], len(load), axis=0)
        diagonal = g.reshape(*g.shape[:-2], n * n)[..., :: n + 1]
        diagonal += arrays.asarray(load.astype(diagonal.real.dtype)).reshape(-1, 1, 1, 1)
        return solve(g, multiply(h[None], y))

    def reference(self, staged: Staged) -> MimoReference:
        """Return the result of LAPACK's zpotrf and zpotrs through SciPy."""
        given = staged.operands
        sent = np.asarray(staged.coordinates["sent"].values)
        return mimo_reference(
            given["channel"], given["received"], sent, self._load(staged), self.case.qam,
            np.asarray(self.case.snr_db),
        )  # fmt: skip

    def assess(
        self,
        staged: Staged,
        reference: MimoReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_mimo`."""
        return assess_mimo(reference, result, precision, device)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return the symbols or their bits, with the numbers of those that were sent."""
        kept = along(staged.coordinates, AXES)
        if self.case.soft_bits:
            title = f"{self.name}: log-likelihood ratios of bits, 0 over 1, the highest bit first"
            sent = np.asarray(staged.coordinates["sent"].values)
            ratios = symbol_bits.soft(result, sent, self.case.qam)
            return Product("soft_bits", ratios, BIT_AXES, kept, title)
        if self.case.hard_bits:
            title = f"{self.name}: bits, the highest first"
            bits = symbol_bits.hard(result, self.case.qam)
            return Product("hard_bits", bits, BIT_AXES, kept, title)
        title = f"{self.name}: equalised symbols"
        return Product("symbols", result, AXES, kept, title)

    def record_coordinates(self, records: Sequence[Record]) -> dict[str, Coordinate]:
        """See `curves_of`."""
        return curves_of(records)

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw the bit error rate of each precision, and EVM, over the signal-to-noise ratio."""
        if self.case.hard_bits:  # the picture takes the signs of ratios
            product = replace(product, data=0.5 - product.data)
        draw_symbols(product, self.case.qam, self.case.makes_bits, axes)
        axes.set_title(f"{pictures.title_of(product)}\n{self.case.qam}-QAM, {self.case.equaliser}")


def _cast(given: Mapping[str, Array], precision: Precision) -> dict[str, Array]:
    """Return channel and received in the type of a precision; what was sent stays on the host."""
    return operands.cast({name: given[name] for name in ("channel", "received")}, precision)


def _solved(g: Any, b: Any) -> Any:
    """Return x, NaN where a system is not positive definite, on the CPU as on a GPU."""
    return solve_hermitian(g, b, info=array_module(g).empty(g.shape[:-2], np.int32))
