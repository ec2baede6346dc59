"""Argand as a backend of scipy.fft: ``scipy.fft.set_backend(argand.fft_backend)``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from argand.device import is_cuda_array
from argand.dft.api import dft
from argand.dft.scipy_transform import by_scipy, is_shared, legacy


def _is_single() -> dict[np.dtype[Any], bool]:
    """Return whether numbers of a type are single, of each type in either order of its bytes.

    Types wider than fp64 on this machine are not among them.
    """
    types = [np.dtype(x) for x in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"]
    types = [x for x in types if x.kind not in "fc" or np.finfo(x).nmant <= 52]
    single = [np.dtype(x) for x in ("float16", "float32", "complex64")]
    return {ordered: x in single for x in types for ordered in (x, x.newbyteorder())}


# A type as it is, not its name, kind and order: each takes a tenth of a short transform.
_SINGLE = _is_single()


class fft_backend:  # noqa: N801  an object of SciPy's, and named as one
    """The backend that scipy.fft hands fft and ifft to; the rest it leaves to the next backend.

    As SciPy's types have it, a backend is a class; one of other precisions is a subclass.

    Attributes:
        single: the precision for float16, float32 and complex64; None is the default of
            `argand.dft`, SciPy's own on the CPU and 3xfp16 on a GPU.
        double: the precision for all other numbers but those wider than fp64, which are left to
            the next backend too.

    Example:
        >>> class Tf32(argand.fft_backend):
        ...     single = "tf32"
        >>> import scipy.fft
        >>> with scipy.fft.set_backend(Tf32):
        ...     scipy.fft.fft(np.array([1, 0, 0, 0], np.float32)).real
        array([1., 1., 1., 1.], dtype=float32)
    """

    single: ClassVar[str | None] = None
    double: ClassVar[str] = "fp64"

    __ua_domain__: ClassVar[str] = "numpy.scipy.fft"
    # Where scipy.fft.set_backend keeps a backend's contexts. It would find a subclass's in that of
    # its base, and compute at the precision of whichever was set first.
    __ua_cache__: ClassVar[dict[tuple[Any, ...], Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__ua_cache__ = {}

    @classmethod
    def __ua_function__(
        cls, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Answer a call of a scipy.fft function; NotImplemented for what is not ours."""
        name = method.__name__
        if name not in ("fft", "ifft"):
            return NotImplemented
        inverse = name == "ifft"
        if not kwargs and len(args) == 1 and type(args[0]) is np.ndarray:
            # An array alone: to check all arguments takes a tenth of a short transform.
            (x,) = args
            single = _SINGLE.get(x.dtype)
            own = cls.single is None if single else single is False and cls.double == "fp64"
            if own and not is_shared(x):
                return legacy()[inverse](x)
        return cls._transform(*args, **kwargs, inverse=inverse)

    @classmethod
    def _transform(
        cls,
        x: Any,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
        inverse: bool,
    ) -> Any:
        """Return a transform by scipy.fft.fft's arguments; SciPy alone takes the last two.

        A number of workers that SciPy refuses is left to it.
        """
        # The type first: to look for attributes that an array lacks takes as long as all else here.
        on_cpu = type(x) is np.ndarray or not is_cuda_array(x)
        x = np.asarray(x) if on_cpu else x
        if workers is not None and not _allowed(workers):
            return NotImplemented
        single = _SINGLE.get(x.dtype)
        if single is None or plan is not None:
            return NotImplemented
        precision = cls.single if single else cls.double
        if on_cpu and precision in ((None, "fp32") if single else ("fp64",)):
            if norm is None and workers is None and not is_shared(x):
                return legacy()[inverse](x, n, axis, overwrite_x)
            return by_scipy(x, n, axis, norm, overwrite_x, workers, inverse)
        return dft(x, axis, n=n, inverse=inverse, norm=norm or "backward", precision=precision)


def _allowed(workers: Any) -> bool:
    """Return whether SciPy takes it: from 1 on, or so many fewer than there are CPUs."""
    return isinstance(workers, int) and (workers > 0 or -(os.cpu_count() or 1) <= workers < 0)
