"""Plans as objects on a CPU: what a call gives, other arrays refused, files that mean harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import (
    DftPlan,
    GemmPlan,
    ImagePlan,
    SoftmaxPlan,
    dft,
    gemm,
    image,
    log_softmax,
    pack,
    softmax,
)
from argand.frameworks.call_plan import CallPlan
from argand.frameworks.foreign import may_be_on_gpu
from argand.runtime.files.own_files import NotOwnError
from argand.runtime.files.plain_files import NotPlainError
from argand.runtime.plans.plan_files import with_digest
from argand.runtime.plans.tuned_plans import TunedPlans

from tests.kernels.gemm.tuning_cases import card
from tests.kernels.image.arrays import sky

Made = tuple[CallPlan, tuple[Any, ...], Any]


def draw(*shape: int, kind: str = "complex64") -> Any:
    rng = np.random.default_rng(7)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(kind)


def products() -> Made:
    a, b = draw(3, 5, 4), draw(6, 4)
    options: dict[str, Any] = {"op_b": "C", "alpha": 2j, "precision": "fp16"}
    return GemmPlan(a, b, **options), (a, b), gemm(a, b, **options)


def transforms() -> Made:
    x = draw(6, 10)
    return DftPlan(x, 0, norm="ortho"), (x,), dft(x, 0, norm="ortho")


def logarithms() -> Made:
    x = draw(4, 9).real
    plan = SoftmaxPlan(x, function="log_softmax", scale=2.0)
    return plan, (x,), log_softmax(x, scale=2.0)


def images() -> Made:
    arrays = sky(7, 3, 20, leading=(2,)).arguments
    return ImagePlan(*arrays, sign=-1), arrays, image(*arrays, sign=-1)


MADE: dict[str, Callable[[], Made]] = {
    "gemm": products, "dft": transforms, "softmax": logarithms, "image": images,
}  # fmt: skip


@pytest.fixture(params=MADE)
def made(request: pytest.FixtureRequest) -> Made:
    return MADE[request.param]()


def test_a_plan_computes_what_the_call_does(made: Made) -> None:
    plan, arrays, expected = made
    out = np.empty_like(expected)
    assert plan(*arrays, out=out) is out  # type: ignore[operator]
    for found in (out, plan(*arrays)):  # type: ignore[operator]
        np.testing.assert_array_equal(found, expected)


def test_other_arrays_are_refused(made: Made) -> None:
    plan, (first, *others), _ = made
    for wrong in (first[..., :-1], first.astype("complex128"), first[None]):
        with pytest.raises(ValueError, match=rf"{plan.names[0]} must be {first.dtype} .* got "):
            plan(wrong, *others)  # type: ignore[operator]


def test_a_result_of_another_form_is_refused(made: Made) -> None:
    """A wider one would be computed at another precision than was planned."""
    plan, arrays, expected = made
    for wrong in (expected.astype(np.result_type(expected, np.float64)), expected[:-1]):
        with pytest.raises(ValueError, match=rf"out must be {expected.dtype} .* got "):
            plan(*arrays, out=wrong)  # type: ignore[operator]


def test_a_plan_says_what_it_runs(made: Made) -> None:
    plan, arrays, _ = made
    text = plan.describe()
    assert text.startswith(f"{plan.operation} of {plan.names[0]} {arrays[0].dtype}")
    for name, value in plan.options.items():
        assert value is None or f"{name}={value}" in text


def test_a_plan_is_saved_and_loaded(made: Made, tmp_path: Path) -> None:
    plan, arrays, expected = made
    plan.save(tmp_path / "plan.json")
    loaded = type(plan).load(tmp_path / "plan.json", *arrays)
    assert loaded.describe() == plan.describe()
    np.testing.assert_array_equal(loaded(*arrays), expected)  # type: ignore[operator]


def test_a_plan_says_what_is_proven() -> None:
    a = draw(4, 4)
    assert "bound: |error of c_ij| <= 1e-06 |row i" in GemmPlan(a, a, tolerance=1e-6).describe()
    assert "exact integers" in GemmPlan(a, a, precision="7xint8").describe()
    assert "within 5.96e-08 of themselves at fp32" in DftPlan(a).describe()
    assert "at bf16" in GemmPlan(pack(a, "bf16"), a).describe()


def test_packed_operands_have_plans() -> None:
    w, x = pack(draw(4, 4), "fp16"), draw(4, 8)
    plan = GemmPlan(w, x)
    np.testing.assert_array_equal(plan(w, x), gemm(w, x))
    with pytest.raises(ValueError, match="a must be packed fp16"):
        plan(draw(4, 4), x)


def test_arguments_are_checked_when_planning() -> None:
    with pytest.raises(ValueError, match="inner dimensions"):
        GemmPlan(draw(3, 4), draw(3, 4))
    with pytest.raises(ValueError, match="function must be one of"):
        SoftmaxPlan(draw(3, 4).real, function="softmin")  # type: ignore[arg-type]


def change(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda content: {**content, **values}


DAMAGED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no plan": (lambda content: [1], "is not a plan of version"),
    "another version": (change(**{"argand plan": 2}), "is not a plan of version"),
    "another operation": (change(operation="gemm"), "is a plan of 'gemm', not of 'dft'"),
    "other arrays": (change(forms=[["complex64", [6, 11]]]), "is for arrays"),
    "no forms": (lambda content: {"argand plan": 1, "operation": "dft"}, "is damaged"),
    "an unknown option": (change(options={"precisian": "fp32"}), "is damaged"),
    "a wrong option": (change(options={"norm": "none"}), "norm must be one of"),
    "options of another kind": (change(options=3), "is damaged"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused(name: str, tmp_path: Path) -> None:
    damage, message = DAMAGED[name]
    plan, arrays, _ = transforms()
    path = tmp_path / "plan.json"
    plan.save(path)
    found = damage(json.loads(path.read_text()))
    path.write_text(json.dumps(with_digest(found) if isinstance(found, dict) else found))
    with pytest.raises(ValueError, match=message):
        DftPlan.load(path, *arrays)


def test_a_number_in_memory_is_read_when_planning(tmp_path: Path) -> None:
    a = draw(4, 4)
    alpha: Any = np.array(2.0)
    plan = GemmPlan(a, a, alpha=alpha)
    alpha[...] = 3
    plan.save(tmp_path / "plan.json")
    for one in (plan, GemmPlan.load(tmp_path / "plan.json", a, a)):
        np.testing.assert_array_equal(one(a, a), gemm(a, a, alpha=2.0))


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """A changed number would otherwise be computed with in silence."""
    a, path = draw(4, 4), tmp_path / "plan.json"
    GemmPlan(a, a, alpha=2.0).save(path)
    assert GemmPlan.load(path, a, a).options["alpha"] == 2.0
    text = path.read_text()
    assert text.count("2.0") == 1
    for changed, said in (
        (text.replace("2.0", "3.0"), "is damaged: its content does not match"),
        (text.replace('"sha256"', '"sha25"'), "has no sha256, as of an earlier version; save"),
    ):
        path.write_text(changed)
        with pytest.raises(ValueError, match=said):
            GemmPlan.load(path, a, a)


def test_text_and_large_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for text, message in (("{" * 100_000, "is not a plan"), (" " * (1 << 21), "has 2097152 bytes")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            DftPlan.load(path, draw(6, 10))


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    plan, arrays, _ = transforms()
    path, link = tmp_path / "plan.json", tmp_path / "link.json"
    plan.save(path)
    link.symlink_to(path)
    with pytest.raises(NotPlainError, match="a symbolic link"):
        DftPlan.load(link, *arrays)
    path.chmod(0o666)
    with pytest.raises(NotOwnError, match="can be written by everybody"):
        DftPlan.load(path, *arrays)


def test_a_narrow_out_does_not_change_the_precision(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 300))
    plan = SoftmaxPlan(x, output="fp32")
    expected = softmax(x, precision="fp64", output="fp32")
    np.testing.assert_array_equal(plan(x), expected)
    np.testing.assert_array_equal(plan(x, out=np.empty_like(expected)), expected)


def test_what_was_tuned_on_a_gpu_does_not_concern_a_cpu(tmp_path: Path) -> None:
    plan, arrays, _ = transforms()
    path = tmp_path / "plan.json"
    plan.save(path)
    tuned = {"name": "some entry", "choice": {}}
    path.write_text(json.dumps(with_digest({**json.loads(path.read_text()), "tuned": tuned})))
    np.testing.assert_array_equal(DftPlan.load(path, *arrays)(*arrays), plan(*arrays))


def test_packed_operands_say_where_they_are() -> None:
    a = pack(np.ones((2, 3), np.complex64), "fp32", side="a")
    assert not may_be_on_gpu(a)
    assert may_be_on_gpu(replace(a, device=replace(a.device, backend="cuda")))


def _named(name: str, row: dict[str, Any], _: Any) -> tuple[str, int]:
    return name, row["x"]


def test_a_tuned_plan_of_a_file_is_adopted_once(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    table = TunedPlans(
        "dft", "some", lambda name, row, card: (name, row["x"]), "", lambda _: card()
    )
    tuned = {**table.measured_on(0), "name": "some entry", "choice": {"x": 3}}
    for _ in range(2):
        table.adopt(0, tuned)
        assert table.find("some entry", 0) == ("some entry", 3)
        assert table.generation == 1
    for wrong, message in (
        ({**tuned, "driver": "CUDA 1.0"}, "measured on"),
        ({**tuned, "choice": {}}, "a damaged tuned plan"),
        ({"name": "some entry"}, "a damaged tuned plan"),
    ):
        with pytest.raises(ValueError, match=message):
            table.adopt(0, wrong)
