# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The runs of a namespace."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import kubernetes
from kubernetes.client.exceptions import ApiException

from . import manifest as manifests
from .errors import Error, NotFound, explained
from .manifest import GROUP, Manifest, Object
from .run import Run

VERSION = "v1alpha1"
RUNS = "trainingruns"
ENVIRONMENTS = "rewardenvironments"
LABEL_SWEEP = GROUP + "/sweep"
# Longer requests than this are given up, in seconds.
REQUEST_SECONDS = 60


class Client:
    """The runs of a namespace, by the kubeconfig that kubectl uses, or in a pod by its ServiceAccount."""

    def __init__(
        self, *, namespace: str | None = None, context: str | None = None, kubeconfig: str | None = None,
    ) -> None:
        self._given = {"context": context, "kubeconfig": kubeconfig}
        chosen, default = _connect(context, kubeconfig)
        self.namespace: str = namespace or default
        self.core = kubernetes.client.CoreV1Api(chosen)
        self.objects = kubernetes.client.CustomObjectsApi(chosen)

    def create(self, manifest: Manifest, *, name: str | None = None, dry_run: bool = False) -> Run:
        """Creates the run of a manifest, and the RewardEnvironments and ConfigMaps beside it that do not exist yet.

        The manifest is the path of a YAML file, its text, a dict or several. With dry_run the API server checks
        everything and creates nothing.
        """
        run, others = manifests.read(manifest)
        if name is not None:
            run.setdefault("metadata", {})["name"] = name
        for o in [*others, run]:
            self._place(o)
        for dry in [True] if dry_run else [True, False]:  # Nothing is created unless everything is accepted.
            for o in others:
                self._create(o, dry, may_exist=True)
            created = self._create(run, dry)
        return Run(self, created)

    def get(self, name: str) -> Run:
        """Returns a run."""
        return Run(self, self.read(name))

    def runs(self, *, sweep: str | None = None) -> list[Run]:
        """Returns the runs of the namespace, or of a sweep or search, in the order of their names."""
        selector = f"{LABEL_SWEEP}={sweep}" if sweep else ""
        with explained("listing runs"):
            listed = self.objects.list_namespaced_custom_object(
                GROUP, VERSION, self.namespace, RUNS, label_selector=selector, _request_timeout=REQUEST_SECONDS)
        runs = [Run(self, o) for o in listed["items"]]
        if sweep and not runs:
            raise NotFound(f"sweep {sweep!r} has no runs in namespace {self.namespace!r}: list sweeps with: "
                           f"kubectl get trainingruns -L {LABEL_SWEEP}")
        return sorted(runs, key=lambda run: (len(run.name), run.name) if sweep else (0, run.name))

    def read(self, name: str) -> Object:
        """Returns the object of a run."""
        try:
            with explained(f"reading run {name!r}"):
                found: Object = self.objects.get_namespaced_custom_object(
                    GROUP, VERSION, self.namespace, RUNS, name, _request_timeout=REQUEST_SECONDS)
                return found
        except NotFound as err:
            names = [run.name for run in self.runs()]
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else (
                "its runs are " + ", ".join(names[:8]) if names else
                "it has no runs: choose another with Client(namespace=...)")
            raise NotFound(f"TrainingRun {name!r} does not exist in namespace {self.namespace!r}: {hint}") from err

    def patch(self, name: str, change: Object) -> Object:
        """Changes the object of a run by a merge patch, and returns it."""
        with explained(f"changing run {name!r}"):
            changed: Object = self.objects.patch_namespaced_custom_object(
                GROUP, VERSION, self.namespace, RUNS, name, change, _request_timeout=REQUEST_SECONDS)
            return changed

    def delete(self, name: str, uid: str) -> None:
        """Deletes a run, unless another one has its name by now."""
        with explained(f"deleting run {name!r}"):
            self.objects.delete_namespaced_custom_object(
                GROUP, VERSION, self.namespace, RUNS, name, _request_timeout=REQUEST_SECONDS,
                body={"preconditions": {"uid": uid}, "propagationPolicy": "Background"})

    def config_map(self, name: str) -> Any | None:
        """Returns a ConfigMap, or None if it does not exist."""
        try:
            with explained(f"reading ConfigMap {name!r}"):
                return self.core.read_namespaced_config_map(name, self.namespace, _request_timeout=REQUEST_SECONDS)
        except NotFound:
            return None

    def plugin_arguments(self) -> list[str]:
        """Returns the flags with which kubectl tinker chooses the same cluster and namespace."""
        arguments = ["--namespace", self.namespace]
        for flag, value in self._given.items():
            if value is not None:
                arguments += ["--" + flag, value]
        return arguments

    def _place(self, o: Object) -> None:
        metadata = o.setdefault("metadata", {})
        if metadata.setdefault("namespace", self.namespace) != self.namespace:
            raise Error(f"{o.get('kind')} {metadata.get('name')!r} is of namespace {metadata['namespace']!r}, and the "
                        f"client of {self.namespace!r}: correct one of them")

    def _create(self, o: Object, dry: bool, may_exist: bool = False) -> Object:
        kind, name = o["kind"], o["metadata"].get("name")
        options: dict[str, Any] = {"_request_timeout": REQUEST_SECONDS, "field_validation": "Strict"}
        if dry:
            options["dry_run"] = "All"
        try:
            with explained(f"creating {kind} {name!r}"):
                if kind == "ConfigMap":
                    created: Object = self.core.create_namespaced_config_map(self.namespace, o, **options).to_dict()
                else:
                    created = self.objects.create_namespaced_custom_object(
                        GROUP, VERSION, self.namespace, RUNS if kind == manifests.RUN else ENVIRONMENTS, o, **options)
                return created
        except Error as err:
            cause = err.__cause__
            if may_exist and isinstance(cause, ApiException) and cause.status == 409:
                return o
            raise


def _connect(context: str | None, kubeconfig: str | None) -> tuple[Any, str]:
    """Returns a client of the API server, and the namespace that its configuration names."""
    folder = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    try:
        _, active = kubernetes.config.list_kube_config_contexts(config_file=kubeconfig)
        api = kubernetes.config.new_client_from_config(config_file=kubeconfig, context=context)
    except kubernetes.config.ConfigException as err:
        if context or kubeconfig or not (folder / "token").exists():
            raise Error(f"choosing the cluster: {err}: set Client(kubeconfig=...), Client(context=...) or the variable "
                        "KUBECONFIG") from err
        configuration = kubernetes.client.Configuration()
        kubernetes.config.load_incluster_config(client_configuration=configuration)
        return kubernetes.client.ApiClient(configuration), (folder / "namespace").read_text(encoding="utf-8").strip()
    if context is not None:
        contexts, _ = kubernetes.config.list_kube_config_contexts(config_file=kubeconfig)
        active = next(c for c in contexts if c["name"] == context)
    return api, active["context"].get("namespace") or "default"
