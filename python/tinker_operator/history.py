# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The history of a run, which the manager writes into ConfigMaps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .errors import Error

KEY = "history.json"
VERSIONS = (1, 2)
# How often a history is read whose chunks are replaced meanwhile.
TRIES = 3

Row = dict[str, Any]


def read(name: str, uid: str, config_map: Callable[[str], Any | None]) -> list[Row]:
    """Returns a row for each step of a run that the history has, in their order."""
    prefix = f"{name}-{uid[:5]}-history"
    for left in reversed(range(TRIES)):
        head = config_map(prefix)
        if head is None:
            return []
        if uid not in [owner.uid for owner in head.metadata.owner_references or []]:
            raise Error(f"ConfigMap {prefix!r} does not belong to the run: delete it")
        table = _decode(prefix, head)
        if table.get("version") not in VERSIONS:
            raise Error(f"ConfigMap {prefix!r} has version {table.get('version')!r} of a history, and this module "
                        f"knows {VERSIONS}: use the module of the operator's version")
        chunks = [(chunk, config_map(f"{prefix}-{chunk}")) for chunk in table.get("chunks") or []]
        if left and any(found is None for _, found in chunks):
            continue  # The manager has replaced them since the head was read.
        rows: list[Row] = []
        for chunk, found in chunks:
            if found is not None:
                rows += _rows(_decode(f"{prefix}-{chunk}", found))
        return rows + _rows(table)
    raise AssertionError("the last try returns")


def _decode(name: str, found: Any) -> dict[str, Any]:
    try:
        table = json.loads((found.data or {})[KEY])
    except (KeyError, ValueError) as err:
        raise Error(f"ConfigMap {name!r} has no history that can be read: {err!r}: delete it, and the manager "
                    "writes another one") from err
    if not isinstance(table, dict):
        raise Error(f"ConfigMap {name!r} has no history that can be read: delete it, and the manager writes "
                    "another one")
    return table


def _rows(table: dict[str, Any]) -> list[Row]:
    metrics = table.get("metrics") or []
    rows = []
    for encoded in table.get("rows") or []:
        row: Row = {field: encoded.get(field) for field in ("step", "attempt", "time", "lineage")}
        for metric, value in zip(metrics, encoded.get("values") or []):
            if value is not None:
                row[metric] = float(value)
        rows.append(row)
    return rows
