"""Contractions of small arrays, for every test of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.normal import wide_normal

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 3, "f": 1}
SUBSCRIPTS = [
    "ab,bc->ac", "ab,bc", "abc,cd->dab", "abc,abd->cd", "abc,acd->bda", "ab,cd->abcd", "ab,ab->",
    "ab,b->a", "aab,bc->ac", "abf,bc->c", "abcd,dcef->abef", "abcd,cdef->efab", "abcd,abef->cdef",
    "ab,ba->ab", "acb,cda->bad", "a,a->a", "bcad,da->abc", "b,bdcf->cf", "cb,ba",
]  # fmt: skip


def operands(rng: np.random.Generator, subscripts: str) -> tuple[Any, Any]:
    a, b = subscripts.partition("->")[0].split(",")
    return wide_normal(rng, *(SIZES[x] for x in a)), wide_normal(rng, *(SIZES[x] for x in b))
