"""The compiler's cache: what it is keyed by, and what it survives."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from argand.runtime.compile import compiler as nvrtc
from argand.runtime.compile import loading
from argand.runtime.compile.compiler import compile_cubin
from argand.runtime.compile.kernel_digest import kernel_digest
from argand.runtime.compile.nvrtc import CompileError
from argand.runtime.compile.nvrtc import _loaded as nvrtc_library
from argand.runtime.files.own_files import NotOwnFolderError

SOURCE = '#include "one.cuh"\nextern "C" __global__ void f(float* x) { x[0] = value(); }\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two headers, one including the other, and an empty cache."""
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path / "cache"))
    sources = tmp_path / "cuda"
    (sources / "deep").mkdir(parents=True)
    (sources / "one.cuh").write_text('#include "deep/two.cuh"\n')
    (sources / "deep" / "two.cuh").write_text("__device__ float value() { return 1.0f; }\n")
    return sources


def test_a_second_compilation_comes_from_the_cache(folder: Path) -> None:
    first = compile_cubin(SOURCE, "sm_80", folder=folder)
    second = compile_cubin(SOURCE, "sm_80", folder=folder)
    assert (first.cached, second.cached) == (False, True)
    assert second.cubin == first.cubin == first.path.read_bytes()
    assert second.resources == first.resources
    assert second.warnings == first.warnings == ()
    assert set(first.resources) == {"f"}


def test_an_edit_of_an_included_header_compiles_again(folder: Path) -> None:
    first = compile_cubin(SOURCE, "sm_80", folder=folder)
    (folder / "deep" / "two.cuh").write_text("__device__ float value() { return 2.0f; }\n")
    second = compile_cubin(SOURCE, "sm_80", folder=folder)
    assert not second.cached
    assert second.path != first.path
    assert second.cubin != first.cubin


def test_target_and_options_are_part_of_the_key(folder: Path) -> None:
    paths = {
        compile_cubin(SOURCE, "sm_80", folder=folder).path,
        compile_cubin(SOURCE, "sm_90a", folder=folder).path,
        compile_cubin(SOURCE, "sm_80", folder=folder, options=("--fmad=false",)).path,
    }
    assert len(paths) == 3


def test_where_the_headers_lie_is_not_part_of_the_key(folder: Path) -> None:
    moved = folder.parent / "elsewhere"
    shutil.copytree(folder, moved)
    first = compile_cubin(SOURCE, "sm_80", folder=folder)
    assert compile_cubin(SOURCE, "sm_80", folder=moved).path == first.path


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "description"])
def test_a_damaged_cubin_is_compiled_again(folder: Path, damage: str) -> None:
    first = compile_cubin(SOURCE, "sm_80", folder=folder)
    data = bytearray(first.cubin)
    if damage == "flipped":
        data[len(data) // 2] ^= 1
        first.path.write_bytes(data)
    elif damage == "truncated":
        first.path.write_bytes(data[:-1])
    elif damage == "empty":
        first.path.write_bytes(b"")
    else:
        beside = first.path.with_suffix(".checked")
        beside.write_bytes(beside.read_bytes()[:-3])
    again = compile_cubin(SOURCE, "sm_80", folder=folder)
    assert not again.cached
    assert again.cubin == again.path.read_bytes() == first.cubin
    assert compile_cubin(SOURCE, "sm_80", folder=folder).cached


@pytest.mark.parametrize("which", [".cubin", ".checked"])
@pytest.mark.parametrize("how", ["link", "names", "writable", "another's"])
def test_a_cubin_that_others_may_have_put_there_is_compiled_again(
    folder: Path, which: str, how: str
) -> None:
    first = compile_cubin(SOURCE, "sm_80", folder=folder)
    described = json.dumps({"kernels": {}, "warnings": []}).encode()
    head = hashlib.sha256(described + b"planted").hexdigest().encode()
    planted = {".cubin": b"planted", ".checked": head + b"\n" + described}
    for name, content in planted.items():  # both fit together, one of them is another's
        first.path.with_suffix(name).write_bytes(content)
    path = first.path.with_suffix(which)
    if how == "writable":
        path.chmod(0o666)
    elif how == "another's":
        if os.getuid():
            pytest.skip("needs root, to give a file to another user")
        os.chown(path, 65534, 65534)
    else:
        elsewhere = path.rename(folder / "planted")
        path.symlink_to(elsewhere) if how == "link" else path.hardlink_to(elsewhere)
    with pytest.warns(RuntimeWarning, match=r"not used, compiled again"):
        again = compile_cubin(SOURCE, "sm_80", folder=folder)
    assert not again.cached
    assert again.cubin == first.cubin
    assert compile_cubin(SOURCE, "sm_80", folder=folder).cached


def test_a_cache_that_others_write_to_is_an_error(folder: Path) -> None:
    compile_cubin(SOURCE, "sm_80", folder=folder)
    (folder.parent / "cache").chmod(0o777)
    with pytest.raises(NotOwnFolderError, match="cache can be written by everybody"):
        compile_cubin(SOURCE, "sm_80", folder=folder)


class Module:
    """CuPy's, without a GPU: it keeps what it was given."""

    def load(self, cubin: bytes) -> None:
        self.loaded = cubin

    def get_function(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, module=self, ptr=7)


def test_the_bytes_that_were_checked_are_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes: list[tuple[int, int, int]] = []
    driver = SimpleNamespace(
        funcSetAttribute=lambda *given: attributes.append(given), funcGetAttribute=lambda *_: 0
    )
    cuda = SimpleNamespace(driver=driver, Device=lambda: SimpleNamespace(id=0))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    monkeypatch.setitem(sys.modules, "cupy.cuda.function", SimpleNamespace(Module=Module))
    compiled = compile_cubin(SOURCE, "sm_80", folder=folder)

    def swapped(source: str, target: str) -> nvrtc.Compiled:
        compiled.path.write_bytes(b"planted")  # by who is faster than the loading
        return compiled

    monkeypatch.setattr(loading, "compile_cubin", swapped)
    source = SOURCE + "// of this test alone\n"
    kernel = loading.load(source, "sm_80", "f", 100_000)
    assert (kernel.function.name, kernel.ptr, kernel.waits) == ("f", 7, False)
    assert kernel.function.module.loaded == compiled.cubin
    assert attributes == [(7, 8, 100_000)]
    assert loading.load(source, "sm_80", "g").function.module is kernel.function.module


def test_a_cubin_described_by_an_older_version_is_compiled_again(folder: Path) -> None:
    first = compile_cubin(SOURCE, "sm_80", folder=folder)
    old = json.dumps({name: asdict(row) for name, row in first.resources.items()}).encode()
    digest = hashlib.sha256(old + first.cubin).hexdigest().encode()
    first.path.with_suffix(".checked").write_bytes(digest + b"\n" + old)
    assert not compile_cubin(SOURCE, "sm_80", folder=folder).cached
    assert compile_cubin(SOURCE, "sm_80", folder=folder).cached


def test_without_a_report_the_cubin_tells(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the report itself, but that all of a stack counts as spills."""
    spilling = (
        'extern "C" __global__ void __launch_bounds__(1024, 2) g(float* x) {\n'
        "    float y[64];\n"
        "    for (int i = 0; i < 64; ++i) y[i] = x[i * 4096 + threadIdx.x];\n"
        "    for (int k = 0; k < 64; ++k) for (int i = 0; i < 64; ++i) y[i] += y[i ^ 1] * y[k];\n"
        "    for (int i = 0; i < 64; ++i) x[i * 4096 + threadIdx.x] = y[i];\n"
        "}\n"
    )
    whole = nvrtc.compile_program
    for number, target in enumerate(("sm_80", "sm_90a")):
        reported = compile_cubin(SOURCE + spilling, target, folder=folder)
        monkeypatch.setattr(nvrtc, "compile_program", lambda *given: (whole(*given)[0], ""))
        monkeypatch.setenv("ARGAND_CACHE", str(folder / f"cache{number}"))
        message = compile_cubin(SOURCE + spilling, target, folder=folder)
        monkeypatch.setattr(nvrtc, "compile_program", whole)
        assert set(message.resources) == {"f", "g"}
        for name, one in message.resources.items():
            true = reported.resources[name]
            assert (one.registers, one.stack) == (true.registers, true.stack)
            assert (one.spill_stores > 0) == (true.spill_stores > 0) == (name == "g")


def test_a_failed_write_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        compile_cubin(SOURCE, "sm_80", folder=folder)
    monkeypatch.undo()
    assert list((folder.parent / "cache").iterdir()) == []


def test_an_error_holds_the_compilers_log(folder: Path) -> None:
    with pytest.raises(CompileError, match="nonsense"):
        compile_cubin('extern "C" __global__ void f() { nonsense; }', "sm_80", folder=folder)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise RuntimeError("no libnvrtc anywhere")

    monkeypatch.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", missing)
    with pytest.raises(CompileError, match=r"no libnvrtc anywhere.*install cuda-bindings"):
        nvrtc_library.__wrapped__()


@pytest.mark.exhaustive
def test_the_first_kernels_of_a_process_compile_beside_each_other(tmp_path: Path) -> None:
    """Two threads that loaded NVRTC at once did not find its builtins."""
    code = (
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from argand.runtime.compile.nvrtc import compile_program\n"
        "source = 'extern \"C\" __global__ void f(float* x) { x[0] = threadIdx.x; }'\n"
        "one = lambda _: compile_program(source, ['--gpu-architecture=sm_80'])\n"
        "with Pool(4) as pool:\n"
        "    assert len(list(pool.map(one, range(4)))) == 4\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_a_missing_header_is_named(folder: Path) -> None:
    with pytest.raises(CompileError, match=r"gone\.cuh: no such header"):
        compile_cubin('#include "gone.cuh"\n', "sm_80", folder=folder)


def test_the_digest_of_an_operation_follows_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "cuda"
    shutil.copytree(nvrtc.SOURCES, sources)
    monkeypatch.setattr(nvrtc, "SOURCES", sources)
    kernel_digest.cache_clear()
    before = {name: kernel_digest(name) for name in ("gemm", "softmax", "dft", "gates", "other")}
    header = sources / "device" / "scaling.cuh"  # which softmax does not include
    header.write_text(header.read_text() + "// edited\n")
    kernel_digest.cache_clear()
    after = {name: kernel_digest(name) for name in before}
    kernel_digest.cache_clear()  # what follows is edited again
    assert after["gemm"] != before["gemm"]
    assert after["dft"] != before["dft"]
    assert after["softmax"] == before["softmax"]
    gate = sources / "gates" / "tile.cuh"
    gate.write_text(gate.read_text() + "// edited\n")
    last = {name: kernel_digest(name) for name in before}
    kernel_digest.cache_clear()
    assert {name for name in before if last[name] != after[name]} == {"gates", "other"}
    within = sources / "gemm" / "modular" / "encode.cuh"  # of a package in a package
    within.write_text(within.read_text() + "// edited\n")
    edited = {name: kernel_digest(name) for name in before}
    kernel_digest.cache_clear()
    assert {name for name in before if edited[name] != last[name]} == {"gates", "gemm", "other"}
    assert all(len(digest) == 16 for digest in before.values())
