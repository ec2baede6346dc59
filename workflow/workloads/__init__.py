"""The kinds of workload: one module each, found by being here."""

import importlib
import pkgutil

from workflow.config.case import Case
from workflow.data import Product, Staged
from workflow.workloads.base import KINDS, Workload

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["KINDS", "Case", "Product", "Staged", "Workload"]
