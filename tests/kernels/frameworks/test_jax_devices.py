"""Arrays of JAX on several devices, which a process has that asks XLA for them at its start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("jax", reason="JAX is not installed")
CODE = """
import jax, numpy
from argand import herk, solve
from jax.sharding import Mesh, NamedSharding, PartitionSpec

first, second = jax.devices("cpu")
x = numpy.eye(4, dtype="complex64")
a, b = jax.device_put(x, first), jax.device_put(x, second)
for device in first, second:
    assert herk(jax.device_put(x, device)).shape == (4, 4)
assert solve(b, b).shape == (4, 4)
rows = jax.device_put(x, NamedSharding(Mesh([first, second], "n"), PartitionSpec("n")))
for call in (lambda: solve(a, b), lambda: herk(rows)):
    try:
        call()
    except TypeError as error:
        print(error)
"""


def test_arrays_on_several_devices_are_refused() -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    found = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    said = "arrays of JAX must be on one device, got {}: move them with jax.device_put"
    assert found.stdout.splitlines() == [
        said.format("a on cpu:0, b on cpu:1"),
        said.format("a on cpu:0 and cpu:1"),
    ]
