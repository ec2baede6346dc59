"""The list of the programs of benchmarks."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import main, programs


def test_every_program_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    found = programs()
    assert {"benchmarks.beside", "benchmarks.sweep", "benchmarks.gates.costs"} <= found.keys()
    assert [name for name, says in found.items() if not says.endswith((".", "`"))] == []
    assert main() == 0
    assert len(capsys.readouterr().out.splitlines()) == len(found)
