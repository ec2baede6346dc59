"""Every file of `benchmarks/peers`: the protocol, what it computes, one dropped in, cuBLASLt."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, to_pairs
from argand.device import cpu
from scipy import fft, special

from benchmarks import peers
from benchmarks.gemm import __main__ as gemm
from benchmarks.peers import CannotRunError, Peer, _registry
from benchmarks.peers import _cublaslt as cublaslt
from benchmarks.peers.__main__ import main as list_peers
from benchmarks.peers.cublaslt_planar import Stored, candidates, joined, right_operand
from workflow.preflight import check
from workflow.preflight.loading import load_study
from workflow.records import NOT_RUN
from workflow.workloads import Workload

EVERY = _registry.every()
TOY = """
import numpy as np
from benchmarks.peers import Peer

def multiply(precision, a, b, c=None, *, alpha=1, beta=0, op_a="N", op_b="N"):
    a, b = (x if op == "N" else x.swapaxes(-1, -2) for x, op in ((a, op_a), (b, op_b)))
    return alpha * np.einsum("...ij,...jk->...ik", a, b) + (beta * c if beta else 0)

PEER = Peer(
    name="toy", operation="gemm", backends=("cpu",), precisions=("fp32",),
    algorithm=lambda precision: "einsum", modules=("MODULE",), compute=multiply, hint="pip it",
)
"""
CASES: dict[str, dict[str, Any]] = {
    "gemm": {"m": 3, "n": 4, "k": 5},
    "beamforming": {"beams": 3, "antennas": 4, "samples": 5},
    "statevector": {"circuit": {"name": "qft", "qubits": 3}},
}


def workload(kind: str, baselines: Any = "auto") -> Workload:
    case = {"kind": kind, "precisions": ["fp32"], "baselines": baselines, **CASES[kind]}
    return load_study({"workloads": {"w": case}}).workload("w")


@pytest.fixture
def drop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts a module beside the peers, as long as a test runs."""
    monkeypatch.setattr(peers, "__path__", [*peers.__path__, str(tmp_path)])
    dropped = []

    def put(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        dropped.append(name)
        _registry.every.cache_clear()

    yield put
    _registry.every.cache_clear()
    for name in dropped:
        sys.modules.pop(f"benchmarks.peers.{name}", None)


@pytest.mark.parametrize("module", EVERY)
def test_every_peer_says_what_it_is(module: str) -> None:
    peer = EVERY[module]
    assert set(peer.backends) <= {"cpu", "cuda"}
    assert peer.backends
    assert peer.precisions
    assert set(peer.precisions) <= set(PRECISIONS)
    assert peer.modules
    if "cpu" in peer.backends:
        assert all(peer.precision(name).name == name for name in peer.precisions)
        assert all(map(peer.algorithm, peer.precisions))
    if reason := peer.missing():
        assert "not installed" in reason
        with pytest.raises(CannotRunError, match=r"not installed"):
            peer.installed()
    else:
        assert any(character.isdigit() for character in peer.installed())


@pytest.mark.parametrize(
    "module", [name for name, one in EVERY.items() if one.backends == ("cpu",)]
)
def test_a_peer_on_the_cpu_computes_what_it_says(module: str, rng: np.random.Generator) -> None:
    """In studies and in benchmarks alike, at each precision, in that precision's type."""
    peer = EVERY[module]
    x, y = rng.standard_normal((2, 4, 4)) + 1j * rng.standard_normal((2, 4, 4))
    r, where, toward = (
        x @ x.conj().T / 8,
        x.real[:, :3],
        np.array([[0.6, 0.0, 0.8], [0.0, 0.0, 1.0]]),
    )
    w = np.exp(2j * np.pi * 3e8 / 299792458 * where @ toward.T)
    power = np.einsum("ad,ab,bd->d", w.conj(), r, w).real
    h = rng.standard_normal(8)
    frames = np.stack([y[:, 0, None].repeat(8, axis=1) * h] * 3, axis=1).reshape(4, 3, 2, 4)
    turns = np.exp(-2j * np.pi * np.outer(2 * np.arange(3), np.arange(4)) / 4)
    spectra = fft.fft(frames.sum(axis=2)) * turns
    places = 2 * np.arange(6)[:, None] + np.arange(4)
    segments = np.square(np.abs(fft.fft(y.reshape(16)[places] * np.arange(1, 5))))
    given, exact, how = {
        "gemm": ((x, y), 2 * x.conj().T @ y, {"alpha": 2, "op_a": "C"}),
        "dft": ((x,), fft.ifft(x, norm="ortho"), {"inverse": True, "norm": "ortho"}),
        "softmax": ((x.real,), special.softmax(x.real, axis=-1), {}),
        "image": ((r[None], where, np.full(1, 3e8), toward), power, {}),
        "beam_power": ((x / 8, y), np.abs(x @ y / 8) ** 2, {}),
        "channelise": (
            (y[:, :1].repeat(12, axis=1), h),
            spectra,
            {"channels": 4, "oversampling": 2},
        ),
        "spectrum": (
            (y.reshape(1, 16), np.arange(1.0, 5.0)),
            segments.reshape(1, 2, 3, 4).mean(axis=2) / 30,
            {"overlap": 2, "average": 3},
        ),
        "hermitian": ((r + np.eye(4), y), np.linalg.inv(r + np.eye(4)) @ y, {}),
        "solve": ((x + 6 * np.eye(4), y), np.linalg.inv(x + 6 * np.eye(4)) @ y, {}),
    }[peer.operation]
    for name in peer.precisions:
        row = PRECISIONS[name]
        dtype = row.output if exact.dtype.kind == "c" else row.real_output
        # Where antennas stand is fp64 at every precision: phases are reduced from it.
        real = "float64" if peer.operation == "image" else row.real_output
        typed = (one.astype(row.output if one.dtype.kind == "c" else real) for one in given)  # type: ignore[attr-defined]
        found = peer.computation(name)(*typed, **how)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, exact, rtol=0, atol=64 * np.finfo(dtype).eps)
    plain = {"gemm": x @ y, "dft": fft.fft(x)}.get(peer.operation, exact)
    problem = {"kind": "fp32", "output": "fp32"} if peer.operation == "softmax" else {}
    measured = peers.candidates(peer.operation, "cpu", **problem)
    assert measured
    for one in measured:
        sizes = how.values() if peer.operation in ("channelise", "spectrum") else ()
        found = one.result(one.compute(*one.prepare(*given, *sizes)))
        np.testing.assert_allclose(found, plain, rtol=0, atol=64 * np.finfo(found.dtype).eps)


@pytest.mark.parametrize("name", ["numpy_solve", "numpy_hermitian", "scipy_solve"])
def test_a_peer_solves_systems_in_the_type_that_it_names(
    name: str, rng: np.random.Generator
) -> None:
    """Rounding fp64's x moves it by u of fp32 at most, elimination in fp32 by more."""
    a, b = (rng.standard_normal((2, 64, 64)) + 1j * rng.standard_normal((2, 64, 64))).astype("c8")
    exact = np.linalg.solve(a.astype(complex), b.astype(complex))
    peer = EVERY[f"benchmarks.peers.{name}"]
    found = peer.computation("fp32")(a, b)
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    in_fp64 = bool(error < np.finfo("f4").eps / 2)
    assert in_fp64 == (peer.algorithm("fp32") == "gesv complex128")


def test_finding_all_peers_imports_no_library_of_a_gpu(root: Path) -> None:
    code = (
        "import sys; from benchmarks.peers import study_names; study_names();"
        "heavy = {'cupy', 'torch', 'triton', 'cuda', 'qiskit', 'qiskit_aer', 'workflow'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)


@pytest.mark.parametrize("kind", CASES)
def test_a_file_that_is_dropped_in_is_measured_in_studies(
    kind: str, drop: Callable[..., None]
) -> None:
    drop("toy", TOY.replace("MODULE", "numpy"))
    one = workload(kind)
    staged = one.stage()
    assert {peer.name for peer in one.baselines(staged, cpu())} >= {"numpy", "toy"}
    (toy,) = workload(kind, ["toy"]).baselines(staged, cpu())
    assert toy.algorithm.startswith("einsum")
    result = toy.compute(toy.prepare(staged.operands))
    computed = one.as_computed(staged, toy.plan_words)
    assert one.assess(computed, one.reference(staged), result, toy.precision, "cpu").verified
    assert "benchmarks.peers.toy" in peers.study_modules()
    check.check_study(load_study({"workloads": {"w": {"kind": kind, "baselines": ["toy"],
                                                      **CASES[kind]}}}))  # fmt: skip


@pytest.mark.usefixtures("quick_measuring")
def test_a_file_that_is_dropped_in_is_measured_in_benchmarks(
    drop: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drop("toy", TOY.replace("MODULE", "numpy"))
    out = tmp_path / "gemm.csv"
    arguments = ["--shape", "3x4x5", "--precisions", "fp32", "--peers", "toy", "--repeats", "1"]
    assert gemm.main([*arguments, "--device", "cpu", "--csv", str(out)]) == 0
    with out.open(newline="") as file:
        _, toy = (row for row in csv.DictReader(file) if row["input"] == "complex64")
    assert (toy["implementation"], toy["algorithm"], toy["verified"]) == ("toy", "einsum", "True")
    assert list_peers() == 0
    assert f"numpy {np.__version__}, einsum" in capsys.readouterr().out


@pytest.mark.usefixtures("quick_measuring")
def test_a_peer_that_is_missing_says_what_is(drop: Callable[..., None], tmp_path: Path) -> None:
    drop("toy", TOY.replace("MODULE", "no_such_library"))
    one = workload("gemm")
    staged = one.stage()
    assert "toy" not in {peer.name for peer in one.baselines(staged, cpu())}
    with pytest.raises(
        ValueError, match=r"baselines must be one of \[.*'numpy'.*\] here, got 'toy'"
    ):
        workload("gemm", ["toy"]).baselines(staged, cpu())
    out = tmp_path / "gemm.csv"
    arguments = ["--shape", "3x4x5", "--precisions", "fp32", "--peers", "toy", "--repeats", "1"]
    assert gemm.main([*arguments, "--device", "cpu", "--csv", str(out)]) == 0
    with out.open(newline="") as file:
        (toy,) = (row for row in csv.DictReader(file) if row["implementation"] == "toy")
    assert toy["reason"] == f"{NOT_RUN}no_such_library is not installed (pip it)"


def test_files_that_are_no_peers_are_refused(drop: Callable[..., None]) -> None:
    drop("_helper", "")  # an underscore: no peer
    assert peers.study_names()
    drop("empty", "")
    with pytest.raises(TypeError, match=r"benchmarks\.peers\.empty must have a Peer called PEER"):
        peers.study_names()
    drop("empty", TOY.replace("MODULE", "numpy").replace('"toy"', '"numpy"'))
    sys.modules.pop("benchmarks.peers.empty")
    with pytest.raises(ValueError, match=r"are both numpy"):
        peers.study_names()
    with pytest.raises(ValueError, match=r"peer x must have compute or prepared"):
        Peer("x", "gemm", ("cpu",), ("fp32",), str, ("numpy",))
    planar = next(one for one in EVERY.values() if one.compute is None)
    with pytest.raises(CannotRunError, match=r"takes prepared operands only"):
        planar.computation("fp16")


def test_an_operation_is_a_package_of_argand() -> None:
    with pytest.raises(ValueError, match=r"operation must be one of \[.*'gemm'.*\], got 'gem'"):
        replace(EVERY["benchmarks.peers.numpy_matmul"], operation="gem")


def test_a_machine_without_the_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def missing(name: str) -> None:
        raise RuntimeError(f"no {name} here\nlooked everywhere")

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", missing)
    cublaslt.library.cache_clear()
    with pytest.raises(CannotRunError, match=r"libcublasLt is not installed: no cublasLt here$"):
        cublaslt.library()
    assert [one.name for one in candidates()] == ["cublaslt-planar"] * 4


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_planes_hold_what_was_rounded(rng: np.random.Generator, name: str) -> None:
    x = rng.standard_normal((3, 5, 14), dtype=np.float32).view(np.complex64)
    stored = Stored.of(x, name)
    assert stored.planes.shape == (2, 3, 5, 7)
    assert np.array_equal(joined(stored), to_pairs(x, name).to_complex64())
    plane_bytes = stored.layout.plane_bytes
    assert plane_bytes % cublaslt.PLANE_ALIGNMENT == 0
    assert plane_bytes >= 3 * 5 * 7 * 2
    assert (stored.layout.rows, stored.layout.columns, stored.layout.batch) == (7, 5, 3)


@pytest.mark.parametrize("transposed", [False, True])
def test_b_lies_as_it_is_or_transposed(rng: np.random.Generator, transposed: bool) -> None:
    x = rng.standard_normal((2, 5, 14), dtype=np.float32).view(np.complex64)
    found = joined(right_operand(x, "fp16", transposed))
    expected = to_pairs(x, "fp16").to_complex64()
    assert np.array_equal(found, expected.swapaxes(-1, -2) if transposed else expected)


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32"])
def test_the_place_of_a_result_is_full_of_nan(name: str) -> None:
    place = Stored.empty(np.empty(0), (1, 3, 4), name)
    assert np.isnan(joined(place)).all()
