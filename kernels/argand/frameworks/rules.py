"""Rules by which a framework traces a call and differentiates it.

Gradients are written once, by methods that torch's tensors and JAX's arrays share, in torch's
convention: of a complex z the gradient of a real L is dL/dRe z + i dL/dIm z. A front end makes them
real, sums them over broadcast axes and converts them as its arrays need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple

from argand.framework import framework_of


class Spec(NamedTuple):
    """Shape and type of an array; the type is NumPy's, or a name that NumPy lacks."""

    shape: tuple[Any, ...]
    dtype: Any


class Differentiated(NamedTuple):
    """A call whose gradient is asked for.

    Attributes:
        call: the public function.
        arrays, options: its arguments, with the arrays as they were before the call; None in place
            of those that `FrameworkRules.reads` does not name.
        shapes: the shapes of its arrays that are the framework's.
        result: the result of the call; None where `FrameworkRules.reads` does not name it.
        needed: names of the arguments whose gradients are asked for.
    """

    call: Callable[..., Any]
    arrays: Mapping[str, Any]
    options: Mapping[str, Any]
    shapes: Mapping[str, tuple[Any, ...]]
    result: Any
    needed: frozenset[str]


Adapted = Callable[[dict[str, Any], dict[str, Any]], Callable[[Any], None] | None]
"""Changes the arrays and the options of a call to others of the same result that kernels read
without a copy. Returns a function that completes the result in place; None where nothing is left
to do."""


class FrameworkRules(NamedTuple):
    """Rules of an operation.

    Attributes:
        result: returns the spec of the result, given the specs of the arrays, the options and
            whether the arrays are on a GPU.
        gradient: returns the gradients of a call's arguments by name, given the call and the
            gradient of its result.
        reads: returns the names of the arrays that gradients read, with ``"result"`` where they
            read that, given the options and the names of the arrays whose gradients are asked for.
        adapted: the rule `Adapted`; None changes nothing.
        leading_axes: whether a call takes any axes before those that it names, and broadcasts them.
        same_launches: returns whether a call with these options always launches the same kernels,
            which read its arrays alone, so that a program may capture them.
        spread: gives arrays of a batch the leading axes that the call requires, by a function such
            as numpy.broadcast_to; None where any axes that broadcast will do.
        calls: returns the call cache of a call that reads its arrays as they are, which needs CuPy.
    """

    result: Callable[[Mapping[str, Spec | None], Mapping[str, Any], bool], Spec]
    gradient: Callable[[Differentiated, Any], dict[str, Any]]
    reads: Callable[[Mapping[str, Any], frozenset[str]], Set[str]]
    adapted: Adapted | None = None
    leading_axes: bool = True
    same_launches: Callable[[Mapping[str, Any]], bool] = lambda _: False
    spread: Callable[[dict[str, Any], Callable[[Any, Any], Any]], None] | None = None
    calls: Callable[[], Any] | None = None


class ForeignCall(NamedTuple):
    """A public function that is called on arrays of a framework.

    Attributes:
        function: a function of NumPy or CuPy arrays, and of options.
        rules: rules of its result, where frameworks may trace and differentiate it.
        adapted: the rule `Adapted`: that of the ``rules``, where there are some.
        written: the argument that the function writes to.
        pairs: `argand.Pairs` where the function takes and returns them.
    """

    function: Callable[..., Any]
    rules: FrameworkRules | None
    adapted: Adapted | None
    written: str
    pairs: type | None


def namespace(x: Any) -> Any:
    """Return the functions of x's framework: ``torch`` or ``jax.numpy``."""
    if framework_of(x) == "jax":
        import jax.numpy

        return jax.numpy
    import torch

    return torch


def copied(x: Any) -> Any:
    """Return an array that may be written in place of x: JAX's never are."""
    return x if framework_of(x) == "jax" else x.clone()


def stored(x: Any) -> tuple[Any, bool, bool]:
    """Return the numbers that lie in memory, and whether x is their negative and their conjugate.

    Only tensors of torch may be such views of others.
    """
    negative, conjugate = (getattr(x, name, bool)() for name in ("is_neg", "is_conj"))
    if negative:
        import torch

        x = torch._neg_view(x)
    return x.conj() if conjugate else x, negative, conjugate


def refuse_copies(arrays: dict[str, Any], _: dict[str, Any]) -> None:
    """Raise ValueError for arrays of torch and JAX that a call would have to copy or convert.

    It is the rule of plans.
    """
    for name, x in arrays.items():
        if any(stored(x)[1:]):
            raise ValueError(
                f"{name} of a plan must not be a conjugate or negative view: resolve it first, or "
                "plan an op of what it is a view of"
            )
        if str(getattr(x, "dtype", None)).removeprefix("torch.") == "bfloat16":
            raise ValueError(
                f"{name} of a plan must be of a type that NumPy has, got bfloat16; softmaxes read "
                "its view as uint16 with format='bf16'"
            )


def conjugate_of_samples(arrays: dict[str, Any], options: dict[str, Any]) -> None:
    """Read the samples ``x`` of a conjugate view, and compute with their conjugates.

    A negative view is `.imag` of conjugates: its numbers have gaps, and are copied as those of any
    such view.
    """
    x = arrays["x"]
    if stored(x)[2]:
        arrays["x"], options["conjugate"] = x.conj(), not options["conjugate"]


def adapted_system(matrix: str) -> Adapted:
    """Return the rule of systems A x = b, A by its name: conj(A) x = b where A x* = b*.

    So the right-hand sides are copied in place of the matrix.
    """

    def adapted(arrays: dict[str, Any], _: dict[str, Any]) -> Callable[[Any], None] | None:
        a, negative, conjugate = stored(arrays[matrix])
        if negative or not conjugate or not hasattr(arrays["b"], "conj"):
            return None
        arrays[matrix], arrays["b"] = a, arrays["b"].conj()
        return lambda found: getattr(found, "x", found).conj_physical_()

    return adapted


def broadcast(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the shape that these broadcast to; sizes may be symbols, so nothing is checked."""
    rank = max(map(len, shapes))
    found = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in shapes if -axis <= len(shape)]
        found.append(next((size for size in sizes if size != 1), sizes[0]))
    return tuple(found)
