# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads manifests as kubectl does."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from .errors import Error

GROUP = "rl.tinker-operator.dev"
API_VERSION = GROUP + "/v1alpha1"
RUN = "TrainingRun"
ENVIRONMENT = "RewardEnvironment"

Object = dict[str, Any]
# What create takes: a file, the text of one, an object, or several.
Manifest = str | os.PathLike[str] | Mapping[str, Any] | Iterable[Mapping[str, Any]]


class _Loader(yaml.SafeLoader):
    """Reads numbers as kubectl does: for PyYAML, 4e-5 is a text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d+$"),
    list("-+0123456789."),
)


def read(manifest: Manifest) -> tuple[Object, list[Object]]:
    """Returns the run of a manifest, and the objects beside it."""
    objects = _objects(manifest)
    runs = [o for o in objects if o.get("kind") == RUN]
    others = [o for o in objects if o.get("kind") != RUN]
    if len(runs) != 1:
        raise Error(f"the manifest has {len(runs)} objects of the kind {RUN}, want 1: give the runs of a chain "
                    "one by one")
    for o in others:
        if o.get("kind") not in (ENVIRONMENT, "ConfigMap"):
            raise Error(f"the manifest has the kind {o.get('kind')}: create makes a {RUN}, and the {ENVIRONMENT}s and "
                        "ConfigMaps beside it; create the others with kubectl")
    return runs[0], others


def _objects(manifest: Manifest) -> list[Object]:
    if isinstance(manifest, Mapping):
        return [copy.deepcopy(dict(manifest))]
    if not isinstance(manifest, (str, os.PathLike)):
        return [copy.deepcopy(dict(o)) for o in manifest]
    text = str(manifest)
    if not isinstance(manifest, str) or "\n" not in manifest:
        try:
            text = Path(manifest).read_text(encoding="utf-8")
        except OSError as err:
            raise Error(f"reading the manifest: {err}: give the path of a YAML file, its text, or a dict") from err
    try:
        objects = [o for o in yaml.load_all(text, Loader=_Loader) if o is not None]
    except yaml.YAMLError as err:
        raise Error(f"reading the manifest: {err}: correct the YAML") from err
    for o in objects:
        if not isinstance(o, dict):
            raise Error(f"reading the manifest: it has {o!r} in the place of an object: begin with apiVersion and kind")
    return objects
