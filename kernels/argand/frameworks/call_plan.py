"""Plans: a call is checked and planned once, for arrays of given forms, and then only repeated.

A form is the shape, the type and, on a GPU, the strides, the device and the address modulo 32. A
plan knows nothing of an operation but its public function; on a GPU it holds what the call cache
keeps of one call, and the memory that the call takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Self

from argand.defaults import Operation, default_precision
from argand.device import Device, cpu, is_cupy_array
from argand.framework import framework_of
from argand.frameworks.foreign import call_on_foreign, has_foreign, is_cuda_tensor, may_be_on_gpu
from argand.frameworks.rules import FrameworkRules, refuse_copies
from argand.precision import PRECISIONS
from argand.runtime.calls.call_plan_forms import (
    as_json,
    as_list,
    form_of,
    from_json,
    given_options,
    in_words,
    require_form,
)
from argand.runtime.plans.plan_files import read_plan, write_plan

if TYPE_CHECKING:  # their modules need CuPy
    from argand.runtime.calls.call_cache import CallCache
    from argand.runtime.calls.device_call_plan import DeviceCallPlan
    from argand.runtime.calls.staged_call_plan import StagedCallPlan
    from argand.runtime.plans.tuned_plans import TunedPlans


class CallPlan:
    """One call of an operation, planned for arrays of given forms; base of every plan.

    Args:
        arrays: one of each operand as later calls have them, None where one is missing.
        options: options of the operation's function, by name.

    Planning makes the call once, into an array of its own: on a GPU its kernels are compiled then,
    and later changes of tuned plans do not concern the plan. Threads may share a plan, and a stream
    too: then one waits until the other has launched its call. A CUDA graph that captured a call has
    memory of its own and may be replayed as long as the plan lives. An array that a plan has seen
    is not checked again while it lives: to assign to its shape does not change what the plan reads.
    A tensor's address, shape and strides are checked at every call.

    Arrays of other libraries are read in place, as by the operation's function. Raises what that
    does, and ValueError for arrays that the call would have to convert or copy.
    """

    operation: ClassVar[str]
    """The public function's name, in files too."""
    names: ClassVar[tuple[str, ...]]
    """The names of the operands."""
    kind: ClassVar[Operation]
    """Name of the operation in `argand.defaults`."""
    pairs: ClassVar[type | None] = None
    """`argand.Pairs` where the operation takes them: tensors of complex32 are such."""
    rules: ClassVar[FrameworkRules | None] = None
    """The rules of the operation, where they give results of 16 bits their type."""
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)
    """Annotations name the arrays that calls return: ``GemmPlan[torch.Tensor]``."""

    def __init__(self, arrays: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        #: Arguments of the operation's function without the operands.
        self.options: dict[str, Any] = {
            name: as_json(name, value) for name, value in options.items()
        }
        self._on_gpu: DeviceCallPlan | StagedCallPlan | None = None
        #: Computes it for operands and last ``out``; None where it does not take them.
        self._start: Callable[[tuple[Any, ...]], Any] = self._computed
        #: The device that computes it.
        self.device: Device = cpu()
        if not has_foreign(*arrays):
            self._plan(**dict(zip(self.names, arrays, strict=True)))
            return
        self._take_type_of_result(arrays)
        self._on_foreign(self._plan, arrays)
        planned: DeviceCallPlan | StagedCallPlan | None = self._on_gpu
        if planned is not None and any(map(is_cuda_tensor, arrays)):
            from argand.frameworks.torch_plan_calls import of_tensors

            self._start = of_tensors(planned)

    def _plan(self, **operands: Any) -> None:
        """Check and choose, for arrays of NumPy and CuPy."""
        arrays = tuple(operands[name] for name in self.names)
        self._forms = [form_of(operands[name], name) for name in self.names]
        self._precision = self.options["precision"] or self._default_of(arrays)
        if any(map(_is_on_gpu, arrays)):
            self._on_gpu = self._planned(arrays)
            self.device, self._start = self._on_gpu.device, self._on_gpu.queue
        else:
            self._result = form_of(self._call(*arrays))

    def _take_type_of_result(self, arrays: tuple[Any, ...]) -> None:
        """Plan the type that the operation's result has for arrays of torch and JAX.

        Raises ValueError for arrays that the call would convert or copy.
        """
        if {"torch", "jax"}.isdisjoint(map(framework_of, arrays)):
            return
        given = dict(zip(self.names, arrays, strict=True))
        refuse_copies(given, {})
        if self.rules is not None and self.rules.adapted is not None:
            names = ("precision", "tolerance", "output")
            options = {name: self.options[name] for name in names if name in self.options}
            self.rules.adapted(given, options)
            self.options |= options

    def _on_foreign(self, function: Callable[..., Any], every: tuple[Any, ...]) -> Any:
        """Call a function on arrays of other libraries, as NumPy's or CuPy's by their names."""
        arrays = dict(zip((*self.names, "out"), every, strict=False))
        return call_on_foreign(function, arrays, adapted=refuse_copies, pairs=self.pairs)

    def _planned(self, arrays: tuple[Any, ...]) -> DeviceCallPlan | StagedCallPlan:
        """Return the part of the plan that a GPU needs."""
        from argand.runtime.calls.device_call_plan import DeviceCallPlan

        return DeviceCallPlan(self._cache(), self._call, arrays)

    def _call(self, *arrays: Any, out: Any = None) -> Any:
        """Call the operation's function."""
        raise NotImplementedError

    def _cache(self) -> CallCache:
        """Return the operation's call cache; a GPU is there."""
        raise NotImplementedError

    def _computed(self, every: tuple[Any, ...]) -> Any:
        """Compute it on the CPU, for operands and last ``out``."""
        if has_foreign(*every):
            return self._on_foreign(self._on_own_arrays, every)
        self._refuse(every[:-1])
        if every[-1] is not None:
            require_form("out", every[-1], self._result)
        return self._call(*every[:-1], out=every[-1])

    def _on_own_arrays(self, **arrays: Any) -> Any:
        """Compute it for NumPy's or CuPy's arrays by their names."""
        every = tuple(arrays[name] for name in (*self.names, "out"))
        found = self._computed(every) if self._on_gpu is None else self._on_gpu.queue(every)
        return self._otherwise(every) if found is None else found

    def _otherwise(self, every: tuple[Any, ...]) -> Any:
        """Compute it for arrays of other libraries; raise ValueError for what a plan refuses."""
        if has_foreign(*every):
            return self._on_foreign(self._on_own_arrays, every)
        planned = self._on_gpu
        assert planned is not None  # on a CPU a plan computes or raises
        if self._start != planned.queue:
            found = planned.queue(every)  # CuPy's arrays, for which a plan for tensors serves too
            if found is not None:
                return found
        self._refuse(every[:-1])
        raise ValueError(planned.mismatch(self.names, every))

    def _refuse(self, arrays: tuple[Any, ...]) -> None:
        """Raise ValueError where an operand has not the form that was planned."""
        for name, x, expected in zip(self.names, arrays, self._forms, strict=True):
            require_form(name, x, expected)

    def describe(self) -> str:
        """Return what a call runs, in lines: operands, options, bound, kernels, plan, workspace."""
        operands = ", ".join(
            f"{name} {in_words(form)}"
            for name, form in zip(self.names, self._forms, strict=True)
            if form is not None
        )
        lines = [f"{self.operation} of {operands}", f"options: {given_options(self.options)}"]
        lines += [f"bound: {self._bound()}", f"device: {self.device.name}"]
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
        forms = [as_list(form) for form in self._forms]
        content = {"options": self.options, "forms": forms, "tuned": tuned}
        write_plan(Path(path), self.operation, content)

    @classmethod
    def load(cls, path: str | Path, *arrays: Any) -> Self:
        """Return the plan in a file of `save`, for arrays of the forms that it names.

        A tuned plan in the file becomes, for arrays on a GPU, that of the process for such sizes.
        Raises NotOwnError and NotPlainError for a file that others may have written, and ValueError
        for one that is not a plan of this operation, was tuned on another card, driver or version,
        or is for other arrays.
        """
        content = read_plan(Path(path), cls.operation)
        try:
            options = {name: from_json(name, value) for name, value in content["options"].items()}
            forms, tuned = content["forms"], content["tuned"]
            found = [as_list(form_of(x)) for x in arrays]
            found += [None] * (len(cls.names) - len(found))
            if found != forms:
                raise ValueError(f"{path} is for arrays {forms}, got {found}")
            if tuned is not None and any(map(may_be_on_gpu, arrays)):
                cls._adopt(tuned)
            return cls(*arrays, **options)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error

    def _default_of(self, arrays: tuple[Any, ...]) -> str:
        """Return the name of the precision of a call that names none."""
        for x in arrays:
            if hasattr(x, "backend_data"):
                return str(x.precision.name)
        return default_precision(self.kind, arrays, on_gpu=any(map(_is_on_gpu, arrays)))

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
        return {name: from_json(name, value) for name, value in self.options.items()}

    @classmethod
    def _adopt(cls, tuned: Any) -> None:
        from argand.runtime.calls.device_call_plan import adopt

        adopt(cls._table(), tuned)

    @classmethod
    def _table(cls) -> TunedPlans[Any] | None:
        """Return the operation's table of tuned plans; None where it has none."""
        return None


class OneArrayPlan(CallPlan):
    """A plan of an operation on one array, x, along one axis; base of those plans."""

    names: ClassVar[tuple[str, ...]] = ("x",)

    def _planned(self, arrays: tuple[Any, ...]) -> DeviceCallPlan | StagedCallPlan:
        (x,), axis = arrays, self.options["axis"]
        if not -x.ndim <= axis < x.ndim:
            return super()._planned(arrays)  # the call says what is allowed
        length = self.options.get("n") or x.shape[axis]
        if axis % x.ndim == x.ndim - 1 and length == x.shape[axis]:
            return super()._planned(arrays)
        from argand.runtime.calls.staged_call_plan import StagedCallPlan

        return StagedCallPlan(self._cache(), self._along_rows, x, axis, length)

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

        Raises ValueError where x or ``out`` has not the planned form, and on a GPU where ``out``
        overlaps x in part.
        """
        found = self._start((x, out))
        return self._otherwise((x, out)) if found is None else found


def _is_on_gpu(x: Any) -> bool:
    """Return whether x is, or consists of, arrays on a GPU."""
    device: Device | None = getattr(x, "device", None) if hasattr(x, "backend_data") else None
    if device is not None:
        return device.backend == "cuda"
    return is_cupy_array(getattr(x, "array", x))
