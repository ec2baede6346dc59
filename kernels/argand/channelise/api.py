"""`channelise`, the public call: a polyphase filter bank. The samples decide where it computes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from argand.channelise.cpu import FilterBank
from argand.channelise.problem import ChanneliseProblem, check_sizes, oversampling_of
from argand.channelise.prototype import prototype
from argand.channelise.signal import are_conjugate, check_signal, check_written, is_real
from argand.defaults import default_precision
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.frameworks.rules import conjugate_of_samples
from argand.gemm.operands import as_operand, on_gpu
from argand.gemm.pairs import Pairs
from argand.precision import Precision, get_precision
from argand.runtime.cpu.numpy_calls import NumpyCalls

_CPU_CALLS: NumpyCalls[FilterBank] = NumpyCalls()


def channelise(
    x: Any,
    channels: int,
    taps: int = 8,
    *,
    window: Any = "hamming",
    oversampling: float | str | Fraction = 1,
    conjugate: bool = False,
    precision: str | Precision | None = None,
    out: Any = None,
) -> Any:
    """Compute the spectra of a polyphase filter bank along the last axis.

    Spectrum s, channel k: y_sk = sum over l of h_l x_(s D + l) exp(-2 pi i k (s D + l) / M), with M
    channels, T M coefficients h, and D = M / oversampling samples from one spectrum to the next. So
    channel k is x shifted down by k / M cycles a sample, filtered, and decimated by D: a tone at
    the centre of a channel has one phase in every spectrum, at any oversampling. Phases count from
    the first sample. (Crochiere and Rabiner, "Multirate digital signal processing", 1983, sections
    7.2.3 and 7.2.5; Harris, Dick and Rice, "Digital receivers and transmitters using polyphase
    filter banks", 2003.)

    Args:
        x: ``(..., time)``, complex or real, of any strides; also `Pairs`, such as pairs of int8, or
            a NumPy structured array of r and i. NumPy arrays are computed on the CPU, CuPy arrays
            on their GPU. Integers are not scaled.
        channels: M, from 2 on: the length of the transforms.
        taps: T. Samples past the last T M of a spectrum are not used.
        window: a name, such as ``hamming``, or (name, parameter...) of scipy.signal: coefficients
            are ``scipy.signal.firwin(T * M, 1 / M, window=window)``, of gain 1. Or T M real
            coefficients, the first of them of a spectrum's first sample.
        oversampling: 1, critically sampled, or a fraction p / q above it whose p divides M: an
            integer, a ``Fraction`` or text such as ``4/3``.
        conjugate: takes the conjugates of the samples, which are not copied: those of a lower
            sideband, whose spectrum a receiver has inverted. Real ones are their own.
        precision: a name of ``PRECISIONS`` or a dtype, as in `argand.dft`, by default fp64 of fp64
            data and else fp32: transforms have it, the filter's sums are fp32's (fp64's at fp64).
            On a GPU the kernel for up to 4096 channels computes in fp32 at every precision but fp64
            (docs/kernels/channelise.md).
        out: where the result goes, C-contiguous, of its shape and type; it must not overlap x.

    Returns:
        ``(..., spectra, channels)``, complex128 at fp64 and complex64 otherwise. Channel k is about
        k / M cycles a sample, from 0 on, so the upper half are the negative frequencies, as of
        `argand.dft`; of real x there are channels 0 to M / 2 alone. Without T M samples there are
        no spectra.

    Raises:
        ValueError: no axes, sizes or an oversampling that do not fit, an unknown window or
            precision, coefficients of another number or not finite, a wrong out.
        TypeError: x that holds no numbers, a conjugate that is neither true nor false; x and out on
            different devices.

    Example:
        >>> voltages = np.ones(64, np.complex64)
        >>> spectra = argand.channelise(voltages, 4, taps=2)
        >>> spectra.shape  # times and channels
        (15, 4)
    """
    key = _CPU_CALLS.key((x, out), (channels, taps, window, oversampling, conjugate, precision))
    bank = _CPU_CALLS.known(key)
    if bank is not None and (out is None or out.flags.c_contiguous):
        return bank(x, out)
    if has_foreign(x, out):
        return call_on_foreign(
            channelise, {"x": x, "out": out}, adapted=conjugate_of_samples, pairs=Pairs,
            channels=channels, taps=taps, window=window, oversampling=oversampling,
            conjugate=conjugate, precision=precision,
        )  # fmt: skip
    given, x = x, as_operand(x, "x")
    if precision is None:
        like = x if out is None else out
        precision = default_precision("filter bank", (like,), on_gpu=on_gpu(x))
    row = get_precision(precision)
    check_sizes(channels, taps)
    channels, taps = int(channels), int(taps)
    real = is_real(x)
    check_signal(x, out)
    fraction = oversampling_of(oversampling, channels)
    *leading, samples = x.shape
    problem = ChanneliseProblem(
        leading=tuple(leading), samples=samples, channels=channels, taps=taps,
        oversampling=fraction, real=real, precision=row,
        conjugate=are_conjugate(conjugate, real=real),
    )  # fmt: skip
    check_written(out, problem.shape, problem.dtype)
    coefficients = prototype(window, channels, taps)
    if on_gpu(x):
        from argand.channelise.gpu import channelise as on_gpus

        return on_gpus(problem, x, coefficients, out)
    bank = FilterBank(problem, coefficients)
    if bank.is_kept and x is given:
        _CPU_CALLS.keep(key, bank)
    return bank(x, out)
