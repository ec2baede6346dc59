"""Verdicts as proofs: results that are far off never pass, and where nothing can be proved it is
said. Each case passed before there were probabilistic bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from argand.precision import EXACT_PRECISIONS
from argand.rounding import split

from workflow import workloads
from workflow.accuracy import Accuracy
from workflow.accuracy.coherence import coherence
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference
from workflow.accuracy.whole_error import LIMIT, whole_error
from workflow.records import Record
from workflow.steps.result_choice import DeliveryError, choose
from workflow.workloads import KINDS

Array = np.ndarray[Any, Any]


def workload_of(**case: Any) -> Any:
    model = KINDS[case["kind"]].case_type
    return workloads.workload_of("w", model.model_validate(case), 7)


def computed(precision: str, **case: Any) -> tuple[Array, Callable[[Array], Accuracy]]:
    """Our result, and what assesses it or a copy."""
    workload = workload_of(**case)
    staged = workload.stage()
    one = workload.argand(staged, PRECISIONS[precision], cpu())
    result = np.asarray(one.compute(one.prepare(staged.operands)))
    reference = workload.reference(staged)
    applied = workload.as_computed(staged, one.plan_words)
    return result, lambda data: workload.assess(applied, reference, data, one.precision, "cpu")


def assessed(precision: str, spoil: Any, **case: Any) -> Any:
    """The assessment of our result as it is, and of it after `spoil`."""
    result, assess = computed(precision, **case)
    return [assess(result), assess(spoil(result.copy()))]


def random_circuit(depth: int, qubits: int = 16) -> dict[str, Any]:
    circuit = {"name": "random", "qubits": qubits, "depth": depth}
    return {"kind": "statevector", "circuit": circuit}


def test_a_bound_that_proves_nothing_says_so() -> None:
    case = random_circuit(500, qubits=4) | {"fuse": 2}
    right, wrong = assessed("bf16", np.zeros_like, **case)
    assert right.verdict == "unproven"
    assert not right.verified
    assert right.reason.startswith("not provable at this precision: the bound on the relative")
    assert not wrong.verified


@pytest.mark.parametrize("precision", ["bf16", "fp16", "3xfp16", "fp32"])
@pytest.mark.parametrize("length", [1 << 12, 1009])
def test_one_wrong_bin_of_a_spectrum_is_seen(precision: str, length: int) -> None:
    def zero(x: Array) -> Array:
        x[0, np.abs(x[0]).argmax()] = 0
        return x

    def far_off(x: Array) -> Array:
        x[1, 7] *= 140
        return x

    for spoil in (zero, far_off):
        right, wrong = assessed(
            precision, spoil, kind="dft", length=length, batch=3, noise=1.0, tones=[]
        )
        assert right.verified, right.reason
        assert not wrong.verified


def test_a_bin_of_a_long_spectrum() -> None:
    def zero(x: Array) -> Array:
        x[0, 4321] = 0
        return x

    case = {"kind": "dft", "length": 1 << 18, "batch": 1, "noise": 1.0, "tones": []}
    right, wrong = assessed("fp32", zero, **case)
    assert right.verified
    assert right.max_row_error < 1e-6
    assert not wrong.verified


def test_the_error_of_unsampled_rows_counts() -> None:
    """Five of 512 rows have large entries that cancel: their errors are those of the result."""
    rng = np.random.default_rng(5)
    a, b = (
        (rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(np.complex64)
        for s in ((512, 256), (256, 128))
    )
    b[128:] = b[:128]
    reference = product_reference(a, b, flop_budget=8 * 256 * 128 * 40)
    rows = [row for row in range(100, 500) if row not in set(reference.rows.tolist())][:5]
    large = 1e3 * (rng.standard_normal((5, 128)) + 0j)
    a[rows, :128], a[rows, 128:] = large, -large + a[rows, 128:]
    reference = product_reference(a, b, flop_budget=8 * 256 * 128 * 40)
    assert reference.sampled
    assert not set(rows) & set(reference.rows.tolist())
    from argand import gemm

    result = gemm(a, b, precision="fp16")
    found = assess_product(reference, result, PRECISIONS["fp16"], backend="cpu")
    exact = a.astype(complex) @ b
    truth = np.linalg.norm(result - exact) / np.linalg.norm(exact)
    assert truth > 0.01
    assert found.rel_frobenius == pytest.approx(truth, rel=0.5)
    assert truth <= found.error_limit
    sampled = np.linalg.norm((result - exact)[reference.rows]) / np.linalg.norm(exact)
    assert sampled < truth / 10


@pytest.mark.parametrize("rank", [1, 3, 40])
def test_the_limit_of_the_estimate_holds_for_any_rank(rank: int) -> None:
    rng = np.random.default_rng(rank)
    a, b = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((40, 30), (30, 50)))
    reference = product_reference(a, b)
    found = []
    for draw in range(60):
        error = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, 50)) * 1e-3
        whole = whole_error(reference, a @ b + error, PRECISIONS["fp64"], backend="cpu", draw=draw)
        found.append(whole.error / np.linalg.norm(error))
    assert 1 / LIMIT < min(found) <= max(found) < LIMIT
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(1, rel=0.5 / np.sqrt(rank))


def test_repeating_data_are_coherent_and_random_ones_are_not() -> None:
    rng = np.random.default_rng(3)
    shape, fp32 = (4, 4096), PRECISIONS["fp32"]
    random = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    for row in PRECISIONS.values():
        assert coherence(random, random.T.copy(), row) < 1.5
    constant = np.full(shape, 0.1 + 0.3j)
    assert coherence(constant, constant.T / 3, fp32) > 5
    assert coherence(random[:, :0], random.T[:0], fp32) == 1
    integers = np.rint(4 * random)  # whose sums are exact, also of first terms
    for row in PRECISIONS.values():
        assert coherence(integers, integers.T.copy(), row) == 1
    assert coherence(constant, constant.T, EXACT_PRECISIONS["7xint8"]) == 1


def _after_a_large_number() -> tuple[Array, Array]:
    a = np.full((1, 1, 1592), 1.6114166798572385, complex)
    a[..., 0] = 2017572800.2196712
    return a, np.full((1, 1592, 2), 1.476008644399475 + 0j)


def _nearly_constant() -> tuple[Array, Array]:
    """Return numbers with the same first terms, and second ones of either sign."""
    rng = np.random.default_rng(163)
    noise = [1 + 2.0**-14 * rng.uniform(-1, 1, shape) for shape in ((1, 1, 1060), (1, 1060, 3))]
    return 0.541 * noise[0] + 0j, 1.352 * noise[1] + 0j


@pytest.mark.parametrize(
    ("precision", "data"), [("fp64", _after_a_large_number), ("3xtf32", _nearly_constant)]
)
def test_right_sums_of_repeating_data_are_verified(
    precision: str, data: Callable[[], tuple[Array, Array]]
) -> None:
    """The products are summed one after another, as a dot product does it."""
    a, b = data()
    row = PRECISIONS[precision]
    dtype = np.dtype(row.output)
    terms = [split(x.astype(dtype), row) for x in (a[0], b[0])]
    result = np.zeros((1, 1, b.shape[-1]), dtype)
    for i, j in row.products:
        products = terms[0][i].T * terms[1][j]
        result[0, 0] += np.cumsum(products, axis=0)[-1]
    found = assess_product(product_reference(a, b), result, row, backend="cpu")
    assert found.verified, found.reason


def record(precision: str, verdict: str, limit: float = 1e-6, time: float = 1.0) -> Record:
    return Record(
        workload="w", kind="gemm", implementation="argand", precision=precision, algorithm="x",
        device="d", rel_frobenius=limit / 2, error_limit=limit, verdict=verdict,
        verified=verdict == "verified", reason="" if verdict == "verified" else verdict,
        time_us_p50=time,
    )  # fmt: skip


def test_an_unproven_result_is_a_product_only_where_it_is_asked_for() -> None:
    size = {"kind": "gemm", "m": 2, "n": 2, "k": 2}
    records = [record("fp32", "verified", time=9.0), record("bf16", "unproven")]
    assert choose(workload_of(**size), records).precision == "fp32"
    explicit = workload_of(**size, precision="bf16")
    with pytest.raises(DeliveryError, match=r"unproven.*set allow_unproven: true"):
        choose(explicit, records)
    allowed = workload_of(**size, precision="bf16", allow_unproven=True)
    assert choose(allowed, records).verdict == "unproven"
    with pytest.raises(DeliveryError):
        choose(allowed, [record("bf16", "suspect")])
    with pytest.raises(ValueError, match="allow_unproven needs a precision by name"):
        workload_of(**size, allow_unproven=True)


def test_auto_compares_the_largest_possible_error() -> None:
    workload = workload_of(kind="gemm", m=2, n=2, k=2, tolerance=1e-3)
    assert choose(workload, [record("tf32", "verified", 1e-3)]).precision == "tf32"
    with pytest.raises(DeliveryError, match=r"at most 0\.0015"):
        choose(workload, [record("tf32", "verified", 1.5e-3)])


def test_a_product_that_cancels_to_zero_is_not_wrong() -> None:
    """In fp64 all of it is 0, at another precision what is left is within the worst case."""
    a = np.array([[0.1, 0.1]], np.complex128)
    b = np.array([[1.0], [-1.0]], np.complex128)
    reference = product_reference(a, b)
    assert not reference.values.any()
    for left, verdict in ((1e-9, "unproven"), (0.0, "unproven"), (1.0, "wrong")):
        result = np.full((1, 1), left, np.complex64)
        found = assess_product(reference, result, PRECISIONS["fp32"], backend="cpu")
        assert found.verdict == verdict, found.reason
    nothing = product_reference(0 * a, b)
    result = np.zeros((1, 1), np.complex64)
    assert assess_product(nothing, result, PRECISIONS["fp32"], backend="cpu").verified
