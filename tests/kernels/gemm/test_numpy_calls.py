"""Products of NumPy arrays whose form came before: checked once, and only calls of that form."""

import numpy as np
import pytest
from argand import gemm
from argand.gemm import api

A = (np.arange(12).reshape(3, 4) + 1j).astype(np.complex64)
B = (np.arange(20).reshape(4, 5) - 2j).astype(np.complex64)
C = np.full((3, 5), 1 - 3j, np.complex64)


def test_a_call_of_a_form_that_came_before_is_not_checked_again(monkeypatch):
    calls = [
        lambda: gemm(A, B, precision="fp32"),
        lambda: gemm(A, B, C, beta=2, op_a="N", out=C.copy()),
        lambda: gemm(A, B, precision="3xtf32", rounding="nearest_even"),
    ]
    first = [call() for call in calls]

    def refuse(*_, **__):
        raise AssertionError("checked again")

    monkeypatch.setattr(api, "gemm_problem", refuse)
    for call, expected in zip(calls, first, strict=True):
        np.testing.assert_array_equal(call(), expected)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"b": B[:3]}, "inner dimensions differ"),
        ({"c": None}, "c must be given"),
        ({"c": C[:2]}, "c must have shape"),
        ({"out": np.zeros((3, 5), np.float32)}, "out must have shape"),
        ({"out": np.zeros((3, 5), ">c8")}, "out must have shape"),
        ({"op_a": "T"}, "inner dimensions differ"),
        ({"kernels": "cublas"}, "cublas"),
        ({"precision": "fp33"}, "precision must be one of"),
        ({"check": True}, "check is for exact products"),
    ],
)
def test_whatever_differs_is_checked(changed, message):
    right = {"a": A, "b": B, "c": C, "beta": 2, "out": np.zeros((3, 5), np.complex64)}
    for _ in range(2):
        gemm(**right)
    with pytest.raises((ValueError, RuntimeError), match=message):
        gemm(**(right | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"alpha": 0.5 - 1j}, {"alpha": 0}, {"beta": 1}, {"beta": 0}, {"precision": "fp64"},
        {"a": A.real.copy()}, {"a": A.astype(np.complex128)}, {"b": np.arange(20).reshape(4, 5)},
        {"a": A.T, "op_a": "T"}, {"a": A.conj().T, "op_a": "C"}, {"a": A.tolist()},
        {"a": A[None], "c": C[None]}, {"out": np.full((3, 5), np.nan, np.complex64)},
    ],
)  # fmt: skip
def test_whatever_differs_is_computed(changed):
    before = {"a": A, "b": B, "c": C, "beta": 2}
    now = before | changed
    for kwargs in (before, now, before, now):
        got = gemm(**kwargs)
        a = np.asarray(kwargs["a"], np.complex128)
        op = {"N": a, "T": a.swapaxes(-1, -2), "C": a.conj().swapaxes(-1, -2)}[
            kwargs.get("op_a", "N")
        ]
        expected = kwargs.get("alpha", 1) * (op @ kwargs["b"]) + kwargs["beta"] * C
        np.testing.assert_array_equal(got, expected)  # small integers: nothing is rounded
        widest = np.result_type(np.asarray(kwargs["a"]), kwargs["b"], np.complex64)
        assert got.dtype == (
            np.complex128 if kwargs.get("precision") == "fp64"
            else np.complex64 if "out" in kwargs else widest
        )  # fmt: skip


def test_pairs_in_a_structured_array_come_again():
    pairs = np.zeros((3, 4), [("r", "i2"), ("i", "i2")])
    pairs["r"], pairs["i"] = A.real, A.imag
    for _ in range(2):
        np.testing.assert_array_equal(gemm(pairs, B), A @ B)


def test_a_number_in_memory_that_changes_is_read_anew():
    """A tensor of torch is such a number, and keeps its hash."""

    class Number:
        __dlpack__ = None
        value = 1j

        def __complex__(self):
            return complex(self.value)

    alpha = Number()
    for value in (1j, 2, 3):
        alpha.value = value
        np.testing.assert_array_equal(gemm(A, B, alpha=alpha), gemm(A, B, alpha=value))


@pytest.mark.parametrize("op", ["N", "T", "C"])
@pytest.mark.parametrize("c", [None, np.full((4, 4), 2 - 1j, np.complex64)])
def test_a_form_that_came_before_has_any_strides(op, c):
    x = (np.arange(16).reshape(4, 4) - 3j).astype(np.complex64)
    wide = np.zeros((8, 12), np.complex64)
    wide[::2, ::3] = x
    turned = x[::-1, ::-1].copy()[::-1, ::-1]
    options = {"op_b": op, "alpha": 2, "beta": 0 if c is None else -1j}
    right = {"N": x, "T": x.T, "C": x.conj().T}[op]
    expected = 2 * (x @ right) + (0 if c is None else -1j * c)
    for a in (x, np.asfortranarray(x), wide[::2, ::3], turned, x.copy()):
        np.testing.assert_array_equal(gemm(a, a, c, **options), expected)
        for out in (np.zeros((4, 4), np.complex64), np.zeros((4, 4), np.complex64, "F"), a.copy()):
            assert gemm(a, a, c, out=out, **options) is out
            np.testing.assert_array_equal(out, expected)
        for names in (("a", "out"), ("b", "out"), ("a", "b", "out")):
            own = a.copy()
            given = {"a": a, "b": a, "c": c} | dict.fromkeys(names, own)
            np.testing.assert_array_equal(gemm(**given, **options), expected)
    if c is not None:
        out = c.copy()
        np.testing.assert_array_equal(gemm(x, x, out, out=out, **options), expected)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(7, 11), (1, 11), (2, 7, 11), (2, 1, 11), (60, 90), (700, 9)])
def test_gaps_between_numbers_leave_the_bits_of_a_product(shape, dtype):
    rng = np.random.default_rng(sum(shape))

    def with_gaps(*shape):
        wide = rng.standard_normal((*shape[:-2], 2 * shape[-2], 3 * shape[-1], 2)).view(complex)
        wide = wide[..., 0].astype(dtype)
        return wide[..., ::2, ::3], wide[..., : shape[-2], : shape[-1]], wide[..., ::-2, -1::-3]

    first = with_gaps(*shape)
    second = with_gaps(*shape[:-2], shape[-1], 13)
    for a in first:
        for b in second:
            expected = gemm(a.copy(), b.copy())
            np.testing.assert_array_equal(gemm(a, b), expected)
            np.testing.assert_array_equal(gemm(a, b, out=np.empty_like(expected)), expected)


def test_a_result_may_begin_at_any_byte():
    memory = np.zeros(8 * 15 + 3, np.uint8)[3:]
    out = memory.view(np.complex64).reshape(3, 5)
    assert not out.flags.aligned
    assert gemm(A, B, C, alpha=2j, beta=1, out=out) is out
    np.testing.assert_array_equal(out, gemm(A, B, C, alpha=2j, beta=1))
