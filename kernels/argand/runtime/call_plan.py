"""Plans: a call is checked and planned once, for arrays of given forms, and then only repeated.

A form is the shape, the type and, on a GPU, the strides, the device and the address modulo 32. A
plan knows nothing of an operation but its public function; on a GPU it holds what the call cache
keeps of one call, and the memory that the call takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from argand.defaults import Operation, default_precision
from argand.device import Device, cpu, is_cupy_array
from argand.precision import PRECISIONS, Precision, precision_name
from argand.runtime.plan_files import read_plan, write_plan


class CallPlan:
    """One call of an operation, planned for arrays of given forms; base of every plan.

    Args:
        arrays: one of each operand as later calls have them, None where one is missing.
        options: of the operation's function, by name.

    Planning makes the call once, into an array of its own: on a GPU its kernels are compiled then,
    and later changes of tuned plans do not concern the plan. A plan serves many streams; the calls
    of one stream are made by one thread at a time. A CUDA graph that captured a call holds
    addresses of the plan's memory, so the plan must live as long as the graph. Later transforms
    replace the workspace that one of cuFFT holds. An array that a plan has seen is not checked
    again while it lives: to assign to its shape does not change what the plan reads.

    Raises what the operation's function does, TypeError for tensors, and ValueError for arrays that
    the call would have to convert or copy.
    """

    operation: ClassVar[str]
    """The public function's name, in files too."""
    names: ClassVar[tuple[str, ...]]
    """Those of the operands."""
    kind: ClassVar[Operation]
    """Its name in `argand.defaults`."""

    def __init__(self, arrays: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        for name, x in zip(self.names, arrays, strict=True):
            own = isinstance(x, np.ndarray) or is_cupy_array(x)
            if hasattr(x, "__dlpack__") and not own:
                raise TypeError(
                    f"{name} of a plan must be NumPy's or CuPy's array, got {type(x).__name__}; "
                    "cupy.from_dlpack and numpy.from_dlpack give views of it"
                )
        #: Arguments of the operation's function but for the operands.
        self.options = {name: _plain(name, value) for name, value in options.items()}
        self._forms = [_form(x) for x in arrays]
        self._precision = self.options["precision"] or self._default_of(arrays)
        self._on_gpu: Any = None
        #: Computes it for operands and last ``out``; None where it does not take them.
        self._start: Callable[[tuple[Any, ...]], Any] = self._computed
        #: Where it computes.
        self.device = cpu()
        if any(map(_is_on_gpu, arrays)):
            self._on_gpu = self._planned(arrays)
            self.device, self._start = self._on_gpu.device, self._on_gpu
        else:
            self._call(*arrays)

    def _planned(self, arrays: tuple[Any, ...]) -> Any:
        """Return the part of the plan that a GPU needs."""
        from argand.runtime.device_plan import DevicePlan

        return DevicePlan(self._cache(), self._call, arrays)

    def _call(self, *arrays: Any, out: Any = None) -> Any:
        """Call the operation's function."""
        raise NotImplementedError

    def _cache(self) -> Any:
        """Return the operation's call cache; a GPU is there."""
        raise NotImplementedError

    def _computed(self, every: tuple[Any, ...]) -> Any:
        """Compute it on the CPU, for operands and last ``out``."""
        self._refuse(every[:-1])
        return self._call(*every[:-1], out=every[-1])

    def _refused(self, every: tuple[Any, ...]) -> Any:
        """Raise ValueError for what a GPU's plan does not take."""
        self._refuse(every[:-1])
        raise ValueError(self._on_gpu.mismatch(self.names, every))

    def _refuse(self, arrays: tuple[Any, ...]) -> None:
        """Raise ValueError where an operand has not the form that was planned."""
        for name, x, expected in zip(self.names, arrays, self._forms, strict=True):
            found = _form(x)
            if found != expected:
                raise ValueError(
                    f"{name} must be {_words(expected)} as planned, got {_words(found)}; "
                    f"make another plan for it"
                )

    def describe(self) -> str:
        """Return what a call runs, in lines: operands, options, bound, kernels, plan, workspace."""
        operands = ", ".join(
            f"{name} {_words(form)}"
            for name, form in zip(self.names, self._forms, strict=True)
            if form is not None
        )
        lines = [f"{self.operation} of {operands}", f"options: {_given(self.options)}"]
        lines.append(f"bound: {self._bound()}")
        lines.append(f"device: {self.device.name}")
        if self._on_gpu is not None:
            chosen = self._on_gpu.chosen
            lines.append(f"kernels: {chosen.kernels}")
            if chosen.plan is not None:
                lines.append(f"plan: {chosen.plan}")
            lines.append(f"workspace: {self._on_gpu.nbytes} bytes")
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, for `load` on a machine of the same card and software.

        The file has the forms, the options and the tuned plan that the call takes, where one was
        measured. Raises OSError where it cannot be written, NotOwnError for a folder that others
        may write to.
        """
        tuned = None if self._on_gpu is None else self._on_gpu.tuned()
        forms = [_listed(form) for form in self._forms]
        content = {"options": self.options, "forms": forms, "tuned": tuned}
        write_plan(Path(path), self.operation, content)

    @classmethod
    def load(cls, path: str | Path, *arrays: Any) -> Self:
        """Return the plan in a file of `save`, for arrays of the forms that it names.

        A tuned plan in the file becomes that of the process, for problems of about that size.
        Raises NotOwnError and NotPlainError for a file that others may have written, and ValueError
        for one that is not a plan of this operation, was tuned on another card, driver or version,
        or is for other arrays.
        """
        content = read_plan(Path(path), cls.operation)
        try:
            options = {name: _loaded(name, value) for name, value in content["options"].items()}
            forms, tuned = content["forms"], content["tuned"]
            found = [_listed(_form(x)) for x in arrays]
            found += [None] * (len(cls.names) - len(found))
            if found != forms:
                raise ValueError(f"{path} is for arrays {forms}, got {found}")
            if tuned is not None:
                cls._adopt(tuned)
            return cls(*arrays, **options)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error

    def _default_of(self, arrays: tuple[Any, ...]) -> str:
        """Return the name of the precision of a call that names none."""
        for x in arrays:
            if hasattr(x, "backend_data"):
                return str(x.precision.name)
        on_gpu = any(map(_is_on_gpu, arrays))
        return default_precision(self.kind, arrays, on_gpu=on_gpu)

    def _bound(self) -> str:
        """Return what is proven of a result, or of the rounded operands that it is made of."""
        tolerance = self.options.get("tolerance")
        if tolerance is not None:
            return f"|error of c_ij| <= {tolerance} |row i of a| |column j of b|, proven"
        row = PRECISIONS.get(self._precision)
        if row is None:
            return "exact integers (docs/kernels/modular.md)"
        return (
            f"operands rounded within {row.u:.3g} of themselves at {row.name}, sums in "
            f"{row.accumulator.name} (docs/verification.md)"
        )

    @property
    def _arguments(self) -> dict[str, Any]:
        """The options as the function takes them."""
        return {name: _loaded(name, value) for name, value in self.options.items()}

    @classmethod
    def _adopt(cls, tuned: Any) -> None:
        from argand.runtime.device_plan import adopt

        adopt(cls._table(), tuned)

    @classmethod
    def _table(cls) -> Any:
        """Return the operation's table of tuned plans; None where it has none."""
        return None


class OneArrayPlan(CallPlan):
    """A plan of an operation on one array, x, along one axis; base of those plans."""

    names = ("x",)

    def _planned(self, arrays: tuple[Any, ...]) -> Any:
        (x,), axis = arrays, self.options["axis"]
        if not -x.ndim <= axis < x.ndim:
            return super()._planned(arrays)  # the call says what is allowed
        length = self.options.get("n") or x.shape[axis]
        if axis % x.ndim == x.ndim - 1 and length == x.shape[axis]:
            return super()._planned(arrays)
        from argand.runtime.staged_plan import StagedPlan

        return StagedPlan(self._cache(), self._along_rows, x, axis, length)

    def _along_rows(self, x: Any, out: Any = None) -> Any:
        """Call the operation's function along the last axis of rows that are staged."""
        return self._function(x, out=out, **{**self._arguments, "axis": -1})

    def _call(self, *arrays: Any, out: Any = None) -> Any:
        return self._function(*arrays, out=out, **self._arguments)

    def _function(self, x: Any, **arguments: Any) -> Any:
        """Call the operation's function with the plan's options as it takes them."""
        raise NotImplementedError

    def __call__(self, x: Any, *, out: Any = None) -> Any:
        """Return the operation's result, in ``out`` where it is given; it may be x.

        Raises ValueError where x or ``out`` has not the planned form, and where ``out`` overlaps x
        in part.
        """
        found = self._start((x, out))
        return self._refused((x, out)) if found is None else found


def _is_on_gpu(x: Any) -> bool:
    """Return whether x is, or consists of, arrays on a GPU."""
    device: Device | None = getattr(x, "device", None) if hasattr(x, "backend_data") else None
    if device is not None:
        return device.backend == "cuda"
    return is_cupy_array(getattr(x, "array", x))


def _form(x: Any) -> tuple[Any, ...] | None:
    """Return an operand's type and shape."""
    if x is None:
        return None
    kind = getattr(x, "format", None) or getattr(x, "dtype", None)
    if kind is None and hasattr(x, "precision"):
        kind = f"packed {x.precision.name}"
    if kind is None:
        x = np.asarray(x)
        kind = x.dtype
    return str(kind), tuple(x.shape)


def _words(form: tuple[Any, ...] | None) -> str:
    return "None" if form is None else f"{form[0]} {form[1]}"


def _listed(form: tuple[Any, ...] | None) -> list[Any] | None:
    return None if form is None else [form[0], list(form[1])]


def _given(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items() if value is not None)


def _plain(name: str, value: Any) -> Any:
    """Return an option as JSON has it: a precision by its name, a complex number as two."""
    if name == "precision" and value is not None:
        found = precision_name(value)
        if isinstance(found, Precision):
            raise ValueError(f"precision of a plan must be a name or a dtype, got {found}")
        return found
    if isinstance(value, np.generic):
        value = value.item()
    return [value.real, value.imag] if isinstance(value, complex) else value


def _loaded(name: str, value: Any) -> Any:
    return complex(*value) if name in ("alpha", "beta") and isinstance(value, list) else value
