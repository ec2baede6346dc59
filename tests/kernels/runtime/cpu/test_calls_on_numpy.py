"""Functions that look the form of a call up before they check it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand.runtime.cpu.numpy_calls import MAX_CALLS, Key, NumpyCalls

X, Y = np.ones((2, 3)), np.ones((3, 2))


def summed(calls: NumpyCalls[Any]) -> tuple[Callable[..., Any], list[Key | None]]:
    """Return a function of two operands that keeps what it is asked for, and the keys it had."""
    keys: list[Key | None] = []

    @calls.of_two("c", "out")
    def sums(
        host: Key | None, a: Any, b: Any, c: Any = None, *, scale: Any = 1, out: Any = None
    ) -> Any:
        """Add."""

        def run(a: Any, b: Any, c: Any = None, out: Any = None) -> Any:
            return "run", scale, a.sum() + b.sum(), c is not None, out is not None

        keys.append(host)
        calls.keep(host, run)
        return run(a, b, c, out)

    return sums, keys


def test_a_call_is_checked_once_for_each_form() -> None:
    sums, keys = summed(NumpyCalls())
    expected = "run", 1, 12.0, False, False
    forms: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((X, Y), {}), ((X, X), {}), ((X[:, :2], Y), {}), ((X, Y.astype("f4")), {}),
        ((X, Y), {"scale": 1}), ((X, Y), {"scale": True}), ((X, Y), {"scale": 1.0}),
        ((X, Y, X), {}), ((X, Y), {"c": X}), ((X, Y), {"out": X}), ((X, Y), {"out": X.T}),
    ]  # fmt: skip
    for _ in range(3):
        for arguments, options in forms:
            sums(*arguments, **options)
    # c is the same by its place and by its name.
    assert len(keys) == len(set(keys)) == len(forms) - 1
    assert sums(X, Y) == sums(X, Y, None) == expected
    assert sums(X, Y, out=None) == expected
    assert len(keys) == len(forms) - 1
    assert sums(X, Y, X, out=Y) == ("run", 1, 12.0, True, True)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((np.ma.array(X), X), {}), ((X, X, X.tolist()), {}), ((X, X), {"out": [1]}),
        ((X, X), {"scale": [1]}), ((X, X), {"scale": X}), ((X,), {"b": X}), ((), {"a": X, "b": X}),
    ],
)  # fmt: skip
def test_a_call_is_checked_each_time(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Lists, numbers in memory, and operands by their names."""
    sums, keys = summed(NumpyCalls())
    for count in (1, 2):
        sums(*arguments, **options)
        assert len(keys) == count


def test_a_function_has_the_name_text_and_signature_of_the_one_with_checks() -> None:
    sums, _ = summed(NumpyCalls())
    assert sums.__name__ == "sums"
    assert sums.__doc__ == "Add."
    assert [*inspect.signature(sums).parameters] == ["a", "b", "c", "scale", "out"]
    assert "host" not in sums.__annotations__
    for arguments, message in (
        ((X,), "missing 1 required positional argument: 'b'"),
        ((X, Y, X, X), "takes from 3 to 4 positional arguments but 5 were given"),
    ):
        with pytest.raises(TypeError, match=message):
            sums(*arguments)
    for _ in range(2):
        with pytest.raises(TypeError, match="multiple values for argument 'c'"):
            sums(X, Y, X, c=X)
        with pytest.raises(TypeError, match="unexpected keyword argument 'd'"):
            sums(X, Y, d=1)


def test_forms_are_forgotten_when_there_are_too_many() -> None:
    calls: NumpyCalls[Any] = NumpyCalls()

    @calls.of_one()
    def length(host: Key | None, x: Any) -> int:
        checked.append(len(x))
        calls.keep(host, len)
        return len(x)

    checked: list[int] = []
    for n in [*range(MAX_CALLS + 1), 0, MAX_CALLS]:
        assert length(np.empty(n, "i1")) == n
    assert checked == [*range(MAX_CALLS + 1), 0]
    assert len(calls.found) == 2
