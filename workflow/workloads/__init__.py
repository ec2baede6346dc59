"""The kinds of workload: one module each, found by being here, imported when it is asked for."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping

from workflow.config.case import Case
from workflow.data import Product, Staged
from workflow.workloads.base import KINDS as REGISTERED
from workflow.workloads.base import Workload


class _Kinds(Mapping[str, type[Workload]]):
    """Every kind by the name that a config uses.

    A kind's module has its name and is imported when the kind is first asked for: a job has one
    kind and need not wait for the others.
    """

    def __init__(self) -> None:
        self._modules = {module.name for module in pkgutil.iter_modules(__path__)}

    def __getitem__(self, name: str) -> type[Workload]:
        if name not in REGISTERED and name in self._modules:
            importlib.import_module(f"{__name__}.{name}")
        return REGISTERED[name]

    def __iter__(self) -> Iterator[str]:
        for name in self._modules:
            importlib.import_module(f"{__name__}.{name}")
        return iter(sorted(REGISTERED))

    def __len__(self) -> int:
        return len(list(iter(self)))


KINDS = _Kinds()


def workload_of(name: str, case: Case, seed: int) -> Workload:
    """Return the workload of a case by its name, of the class that computes it."""
    return KINDS[case.kind].for_case(case)(name, case, seed)


__all__ = ["KINDS", "Case", "Product", "Staged", "Workload", "workload_of"]
