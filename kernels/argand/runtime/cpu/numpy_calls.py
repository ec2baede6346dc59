"""Earlier calls on NumPy arrays: what computes them, by the form of the arguments.

A check of the arguments takes longer than a small product. Beside a large product, which has
emptied the caches, it takes several percent of the time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import numpy as np

from argand.framework import framework_of

Key = tuple[Any, ...]
_Found = TypeVar("_Found")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_MISSING: Any = object()
MAX_CALLS = 4096
"""Most entries; then all are dropped, because a program of so many forms repeats few of them."""


class _Decorator(Protocol):
    """Makes the user's function from one that checks its arguments and takes a call's key first."""

    def __call__(
        self, checked: Callable[Concatenate[Key | None, _Given], _Result], /
    ) -> Callable[_Given, _Result]: ...


def may_change(options: tuple[Any, ...]) -> bool:
    """Return whether an option is a number in memory, such as a tensor of torch.

    A call with it must not be kept: its hash stays when the number changes.
    """
    return any(
        may_change(x) if isinstance(x, tuple) else framework_of(x) is not None for x in options
    )


class NumpyCalls(Generic[_Found]):
    """Calls of one operation that are kept by the form of their arguments.

    `of_one` and `of_two` decorate the function that checks the arguments of a call. The decorated
    function looks up the form of its arguments first, and calls what was kept under it with the
    operands, and with those of the ``others``, such as out, that are arrays, by their names. Where
    nothing was kept it calls the checking function, which takes the key of the call as its first
    argument, None for a call that is never kept, and may `keep` a function under the key.

    `of_one` and `of_two` are written out, and operands without options are looked up by one
    dictionary in another: around a product of few numbers a function that makes keys takes long,
    and so does the hash of a longer key. Options stand in a key with their types, because a float
    equals an integer, and 1 equals True.
    """

    def __init__(self) -> None:
        self.found: dict[Key, _Found] = {}
        self._plain: dict[Any, Any] = {}
        self._parts = 0  # of a key of operands without options

    def of_one(self, *others: str) -> _Decorator:
        """Return a decorator of functions of one operand."""

        def decorated(checked: Callable[..., Any]) -> Callable[..., Any]:
            plain, names, array = self._plain, _positional(checked)[1:], np.ndarray
            self._parts, found = 2, self.found

            def call(x: Any = _MISSING, /, *more: Any, **options: Any) -> Any:
                key: Key | None = None
                if type(x) is array:
                    if options or more:
                        key, arrays = _with_form((x.dtype, x.shape), more, options, names, others)
                        try:
                            run = found[key]  # type: ignore[index]
                        except (KeyError, TypeError):  # a new form, or an option given as a list
                            pass
                        else:
                            return run(x, **arrays) if arrays else run(x)  # type: ignore[operator]
                    else:
                        try:
                            run = plain[x.dtype][x.shape]
                        except KeyError:
                            key = x.dtype, x.shape
                        else:
                            return run(x)
                if x is _MISSING:
                    return checked(key, **options)
                if more:
                    return checked(key, x, *more, **options)
                if options:
                    return checked(key, x, **options)
                return checked(key, x)

            return _as(checked, call)

        return decorated

    def of_two(self, *others: str) -> _Decorator:
        """Return a decorator of functions of two operands."""

        def decorated(checked: Callable[..., Any]) -> Callable[..., Any]:
            plain, names, array = self._plain, _positional(checked)[2:], np.ndarray
            self._parts, found = 4, self.found

            def call(a: Any = _MISSING, b: Any = _MISSING, /, *more: Any, **options: Any) -> Any:
                key: Key | None = None
                if type(a) is array and type(b) is array:
                    if options or more:
                        key = a.dtype, a.shape, b.dtype, b.shape
                        key, arrays = _with_form(key, more, options, names, others)
                        try:
                            run = found[key]  # type: ignore[index]
                        except (KeyError, TypeError):  # a new form, or an option given as a list
                            pass
                        else:
                            return run(a, b, **arrays) if arrays else run(a, b)  # type: ignore[operator]
                    else:
                        try:
                            run = plain[a.dtype][a.shape][b.dtype][b.shape]
                        except KeyError:
                            key = a.dtype, a.shape, b.dtype, b.shape
                        else:
                            return run(a, b)
                if b is _MISSING:
                    return checked(key, *() if a is _MISSING else (a,), **options)
                if more:
                    return checked(key, a, b, *more, **options)
                if options:
                    return checked(key, a, b, **options)
                return checked(key, a, b)

            return _as(checked, call)

        return decorated

    def key(self, arrays: tuple[Any, ...], options: tuple[Any, ...]) -> Key | None:
        """Return the key of calls of one form; None for calls that are never kept.

        ``arrays`` are the operands and last the result, None where one is missing; ``options`` are
        all other arguments.
        """
        # A float equals the integer, and 1 the truth value, whose call was kept.
        key: list[Any] = [options, *map(type, options)]
        for x in arrays:
            if type(x) is np.ndarray:
                key += x.dtype, x.shape
            elif x is None:
                key.append(None)
            else:
                return None
        if arrays[-1] is not None:
            key.append(arrays[-1].strides)  # those of a result that is refused are no kept form's
        return tuple(key)

    def known(self, key: Key | None) -> _Found | None:
        """Return the call that is kept under this key; None where there is none."""
        try:
            return None if key is None else self.found.get(key)
        except TypeError:  # an option that is given as a list
            return None

    def keep(self, key: Key | None, found: _Found) -> None:
        """Keep what was found of a call that took its operands as they were given."""
        if key is None or may_change(key):
            return
        if len(self.found) >= MAX_CALLS:
            self.clear()
        try:
            self.found[key] = found
        except TypeError:  # an option that is given as a list
            return
        if len(key) == self._parts:
            inner = self._plain
            for part in key[:-1]:
                inner = inner.setdefault(part, {})
            inner[key[-1]] = found

    def clear(self) -> None:
        """Forget all calls."""
        self.found.clear()
        self._plain.clear()


def _with_form(
    key: Key,
    more: tuple[Any, ...],
    options: dict[str, Any],
    names: tuple[str, ...],
    others: tuple[str, ...],
) -> tuple[Key | None, dict[str, Any] | None]:
    """Return a key with what is given behind the operands, and those ``others`` that are arrays.

    ``names`` are those of further positional arguments. Strides of a result that is refused are
    those of no kept form.
    """
    given: Iterable[tuple[str, Any]] = options.items()
    if more:
        if len(more) > len(names) or not options.keys().isdisjoint(names[: len(more)]):
            return None, None
        given = [*zip(names, more, strict=False), *given]
    arrays: dict[str, Any] | None = None
    for name, x in given:
        if name not in others:
            key += name, x, type(x)
        elif type(x) is np.ndarray:
            key += name, x.dtype, x.shape, x.strides
            if arrays is None:
                arrays = {name: x}
            else:
                arrays[name] = x
        elif x is not None:
            return None, None
    return key, arrays


def _positional(checked: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's positional arguments behind the key."""
    code = checked.__code__
    return code.co_varnames[1 : code.co_argcount]


def _as(checked: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call`` with the name, the text and the signature of ``checked``, without its key."""
    update_wrapper(call, checked)
    whole = inspect.signature(checked)
    _, *parameters = whole.parameters.values()
    call.__annotations__ = {**checked.__annotations__}
    del call.__annotations__[next(iter(whole.parameters))]
    call.__signature__ = whole.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call
