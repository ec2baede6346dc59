"""Where operands come from: files, their checksums, datasets, and what the files say of them.

A product's certificate has all of it, so that a product away from its study still says of which
telescope, state or channel it is.
"""

from __future__ import annotations

from typing import Any

from workflow.config.file_input import FileInput
from workflow.storage.file_sequence import files_named
from workflow.storage.inputs import files_beside, source_checksum
from workflow.storage.source_attributes import ATTRIBUTES, datasets_of, source_attributes


def provenance(source: FileInput) -> dict[str, Any]:
    """Return operands' sources: paths, SHA-256 of the files, datasets, and what the files say.

    Other files that hold some of the values (``external: true``) are listed with theirs, and those
    of a recording that a pattern names.
    """
    file = source.file
    files = files_named(file, source.format) if file else []
    several = files if files != [file] else []
    beside = {str(path): source_checksum(path) for path in (*several, *files_beside(source))}
    one = {"source_sha256": source_checksum(file)} if file and not several else {}
    named = {name: ", ".join(paths) for name, paths in datasets_of(source).items()}
    return {
        **({"source": str(file), **one} if file else {}),
        **({"files_sha256": beside} if beside else {}),
        **({"datasets": named} if named else {}),
        **({"select": dict(source.select)} if source.select else {}),
        **({ATTRIBUTES: said} if (said := source_attributes(source)) else {}),
    }
