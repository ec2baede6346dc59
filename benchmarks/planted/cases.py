"""Small workloads of every kind, drawn with a seed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from workflow.accuracy.references import product_reference
from workflow.config.matrix_product_case import MatrixProductCase
from workflow.preflight.loading import load_study
from workflow.workloads import KINDS, Workload

_SAMPLED_BUDGET = 2e4
"""Operations of a reference that is sampled here, so that a small product's is."""


NAMES = sorted(
    [*KINDS, *(f"{name} {variant}" for name, kind in KINDS.items() for variant in kind.variants)]
)
"""Kinds, and kinds with a variant after them."""


def cases_of(name: str, count: int, seed: int) -> Iterator[tuple[int, Workload, bool]]:
    """Yield numbered cases, the first ones the same for any ``count``, and whether to sample each.

    Every other product has a sampled reference. ``name`` is one of `NAMES`.
    """
    kind, _, variant = name.partition(" ")
    for number in range(count):
        rng = np.random.default_rng([seed, number, *name.encode()])
        keys = KINDS[kind].drawn_variant(rng, variant) if variant else KINDS[kind].drawn(rng)
        drawn = {"kind": kind, **keys}
        config = {"seed": seed + number, "baselines": "none", "workloads": {"planted": drawn}}
        workload = load_study(config).workload("planted")
        yield number, workload, isinstance(workload.case, MatrixProductCase) and number % 2 == 1


@contextlib.contextmanager
def small_references(sampled: bool) -> Iterator[None]:
    """Have products' references sampled from fewer operations on, where ``sampled``."""
    keywords = product_reference.__kwdefaults__
    assert keywords is not None
    before = keywords["flop_budget"]
    try:
        keywords["flop_budget"] = _SAMPLED_BUDGET if sampled else before
        yield
    finally:
        keywords["flop_budget"] = before
