"""Origin of operands: files, their checksums, datasets, and what the files say of them.

A product's certificate has all of it, so that a product away from its study still says which
telescope, state or channel it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workflow.config.file_input import FileInput
from workflow.files.file_sequence import files_named
from workflow.inputs.hdf5_operands import files_beside, source_checksum
from workflow.inputs.lacking import ASSUMED, LEFT_OUT, LOST, ZEROS
from workflow.inputs.source_attributes import (
    ATTRIBUTES,
    datasets_of,
    kept_text,
    source_attributes,
)
from workflow.storage.certificates import CAVEATS, read_certificate

MADE_OF = "made_of"
"""Key of a certificate: how each operand was made that is another workload's product."""
INPUT = "input"
"""Key of a certificate: what a study says of the operands' data, as JSON."""
_OF_A_PRODUCT = (
    "workload", "kind", "precision", "parameters", "source", "source_sha256", "files_sha256",
    "datasets", "select", INPUT, ZEROS, LOST, LEFT_OUT, ASSUMED, CAVEATS, "circuit",
    "circuit_sha256", "circuit_read_by", "seed", ATTRIBUTES, MADE_OF,
)  # fmt: skip
"""Fields of a product's certificate that the certificates of further products keep."""


def file_attributes(key: str, path: Path) -> dict[str, str]:
    """Return the attributes of a user's file, as `file_digests` reads them: its path and SHA-256.

    ``key`` says what it is: ``source`` of an input, or ``circuit``.
    """
    return {key: str(path), f"{key}_sha256": source_checksum(path)}


def file_digests(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of each of the user's files that operands were staged from, by its path.

    They are in the order of `Study.input_files`: a circuit, an input, and what is beside it.
    """
    named = {attributes.get(one): attributes.get(f"{one}_sha256") for one in ("circuit", "source")}
    own = {path: digest for path, digest in named.items() if path and digest}
    return {**own, **attributes.get("files_sha256", {})}


def of_products(products: Mapping[str, Path]) -> dict[str, Any]:
    """Return how the products that are operands were made, and what the user's files say of them.

    So a product at the end of a chain names the files at its beginning.
    """
    certificates = {operand: read_certificate(path) for operand, path in products.items()}
    return {MADE_OF: _each_once(certificates, set())} if certificates else {}


def _each_once(certificates: Mapping[str, Any], named: set[str]) -> dict[str, Any]:
    """Return certificates as kept, by operand; those of workloads in ``named`` by name alone.

    A product of products of one workload would else double what it keeps with each of them.
    """
    found: dict[str, Any] = {}
    for operand, one in certificates.items():
        name = {"workload": one["workload"]}
        if one == name or one["workload"] in named:  # all of it stands elsewhere
            found[operand] = name
            continue
        named.add(one["workload"])
        kept = {key: one[key] for key in _OF_A_PRODUCT if key in one}
        if MADE_OF in one:
            kept[MADE_OF] = _each_once(one[MADE_OF], named)
        found[operand] = kept
    return found


def _said_by_study(source: FileInput) -> str:
    """Return what an input says of its data as JSON, without what stands elsewhere."""
    return source.model_dump_json(
        exclude={"file", "select", *source.products()}, exclude_unset=True
    )


def provenance(source: FileInput) -> dict[str, Any]:
    """Return operands' sources: paths, SHA-256 of the files, datasets, and what the files say.

    `INPUT` is what the study says of them, which may be how numbers are read: a zero level, flags,
    axes, coordinates and units.

    Other files that hold some of the values (``external: true``) are listed with their checksums,
    and so are the files of a recording that a pattern names.
    """
    file = source.file
    files = files_named(file, source.format) if file else []
    several = files if files != [file] else []
    beside = {str(path): source_checksum(path) for path in (*several, *files_beside(source))}
    own = file_attributes("source", file) if file and not several else {}
    named = {name: ", ".join(paths) for name, paths in datasets_of(source).items()}
    return {
        **({"source": str(file), **own} if file else {}),
        **({"files_sha256": beside} if beside else {}),
        **({"datasets": named} if named else {}),
        **({"select": dict(source.select)} if source.select else {}),
        **({INPUT: kept_text(given)} if (given := _said_by_study(source)) != "{}" else {}),
        **({ATTRIBUTES: said} if (said := source_attributes(source)) else {}),
    }
