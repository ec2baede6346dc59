"""The wheel of cubins: what it ships is found by its digest, and nothing else is."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from argand.runtime.compile import compiler, cubin_cache
from argand.runtime.compile.compiler import compile_cubin
from argand.runtime.compile.cubin_cache import DamagedCubinError, shipped_folder

from tools.cubins import build_wheel

SOURCE = 'extern "C" __global__ void f(float* x) { x[0] = 1.0f; }\n'


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a wheel with one kernel, installed, beside an empty cache."""
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path / "built"))
    compile_cubin(SOURCE, "sm_90a")
    wheel = build_wheel(tmp_path / "built", tmp_path)
    zipfile.ZipFile(wheel).extractall(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path / "cache"))
    shipped_folder.cache_clear()
    yield tmp_path / "packages" / cubin_cache.SHIPPED_PACKAGE
    shipped_folder.cache_clear()


def test_what_is_shipped_is_not_compiled(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = compile_cubin(SOURCE, "sm_80")
    assert not other.cached
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "compile_program", lambda *_: pytest.fail("it is compiled"))
        found = compile_cubin(SOURCE, "sm_90a")
    assert (found.cached, found.path.parent) == (True, shipped)
    assert found.cubin == found.path.read_bytes()
    assert set(found.resources) == {"f"}


def test_a_damaged_cubin_is_refused(shipped: Path) -> None:
    (path,) = shipped.glob("*.cubin")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(DamagedCubinError, match="install argand-cubins again"):
        compile_cubin(SOURCE, "sm_90a")
