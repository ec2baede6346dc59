"""`spectrum`, the public call: spectrograms and Welch's estimates. The samples decide where."""

from __future__ import annotations

from typing import Any

from argand.channelise.signal import are_conjugate, check_signal, check_written, is_real
from argand.defaults import default_precision
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.frameworks.rules import conjugate_of_samples
from argand.gemm.operands import as_operand, on_gpu
from argand.gemm.pairs import Pairs
from argand.precision import Precision, get_precision
from argand.runtime.cpu.numpy_calls import NumpyCalls
from argand.spectrum.cpu import Estimator
from argand.spectrum.problem import spectrum_problem
from argand.spectrum.window import scaled_window

_CPU_CALLS: NumpyCalls[Estimator] = NumpyCalls()


def spectrum(
    x: Any,
    length: int,
    *,
    overlap: int | None = None,
    window: Any = "hann",
    average: int | str = 1,
    detrend: str | None = None,
    scaling: str = "density",
    sample_rate: float = 1.0,
    onesided: bool | None = None,
    conjugate: bool = False,
    precision: str | Precision | None = None,
    out: Any = None,
) -> Any:
    """Compute the power of windowed segments along the last axis, and its mean over groups of them.

    Row g, bin k: the mean over the segments s of group g of |sum over n of w_n x_(s D + n)
    exp(-2 pi i k n / N)|^2, times a scale, with N the length and D = N - overlap. So ``average=1``
    is ``scipy.signal.spectrogram(..., mode="psd")`` and ``average="all"`` is
    ``scipy.signal.welch``, whose default is ``detrend="constant"``. (Welch, "The use of fast
    Fourier transform for the estimation of power spectra", 1967.)

    Args:
        x: ``(..., time)``, complex or real, of any strides; also `Pairs`, such as pairs of int8, or
            a NumPy structured array of r and i. NumPy arrays are computed on the CPU, CuPy arrays
            on their GPU. Integers are not scaled.
        length: N, from 1 to 2^26.
        overlap: samples that a segment shares with the next one, below N; None is half of N.
        window: a name, such as ``hann``, or (name, parameter...) of scipy.signal.get_window, or N
            real coefficients.
        average: segments of a group, or ``all`` of them. What is left of whole groups is not used.
        detrend: what is subtracted from each segment before the window, as by
            ``scipy.signal.detrend``: ``constant``, its mean, ``linear``, its least-squares line, or
            None, nothing. Means and lines are fp64's at every precision.
        scaling: ``density``, power over the bandwidth, in units of x^2 over Hz; ``spectrum``, the
            power of a tone at a bin's centre, in units of x^2.
        sample_rate: samples a second; the bins are those of ``numpy.fft.fftfreq(N, 1 /
            sample_rate)``, or of ``rfftfreq`` where one-sided.
        onesided: whether a result of real x has bins 0 to N / 2 alone, and the inner ones hold both
            sides' power; None is true for real x. Complex x has both sides.
        conjugate: takes the conjugates of the samples, which are not copied: the bins are in
            reverse. Real ones are their own.
        precision: a name of ``PRECISIONS``, as in `argand.dft`, by default that of the data: fp64
            where ``out`` has it, or x where there is no ``out``; else fp32. Transforms have it,
            windowed samples and squares are fp32's (fp64's at fp64), sums over batches of segments
            fp64's. On a GPU the kernel for up to 4096 points computes in fp32 at every precision
            but fp64 (docs/kernels/spectrum.md).
        out: where the result goes, C-contiguous, of its shape and type; it must not overlap x.

    Returns:
        ``(..., groups, bins)``, float64 at fp64 and float32 otherwise. Without N samples there are
        no groups.

    Raises:
        ValueError: no axes, sizes that do not fit, an unknown window, detrend, scaling or
            precision, coefficients of another number or not finite, a wrong out.
        TypeError: x that holds no numbers, a flag that is neither true nor false; x and out on
            different devices.

    Example:
        >>> tone = np.exp(2j * np.pi * 3 / 16 * np.arange(64))
        >>> power = argand.spectrum(tone, 16, average="all")
        >>> int(power.argmax())
        3
    """
    key = _CPU_CALLS.key(
        (x, out),
        (length, overlap, window, average, detrend, scaling, sample_rate, onesided, conjugate,
         precision),
    )  # fmt: skip
    kept = _CPU_CALLS.known(key)
    if kept is not None and (out is None or out.flags.c_contiguous):
        return kept(x, out)
    if has_foreign(x, out):
        return call_on_foreign(
            spectrum, {"x": x, "out": out}, adapted=conjugate_of_samples, pairs=Pairs,
            length=length, overlap=overlap, window=window, average=average, detrend=detrend,
            scaling=scaling, sample_rate=sample_rate, onesided=onesided, conjugate=conjugate,
            precision=precision,
        )  # fmt: skip
    given, x = x, as_operand(x, "x")
    if precision is None:
        like = x if out is None else out
        precision = default_precision("filter bank", (like,), on_gpu=on_gpu(x))
    row, real = get_precision(precision), is_real(x)
    check_signal(x, out)
    problem = spectrum_problem(
        tuple(x.shape), length=length, overlap=overlap, average=average, real=real,
        onesided=onesided, precision=row, detrend=detrend,
        conjugate=are_conjugate(conjugate, real=real),
    )  # fmt: skip
    check_written(out, problem.shape, problem.dtype)
    coefficients = scaled_window(window, problem.length, scaling, sample_rate)
    if on_gpu(x):
        from argand.spectrum.gpu import spectrum as on_gpus

        return on_gpus(problem, x, coefficients, out)
    kept = Estimator(problem, coefficients)
    if kept.is_short and x is given:
        _CPU_CALLS.keep(key, kept)
    return kept(x, out)
