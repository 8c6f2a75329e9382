# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The checks in the order in which they run."""

import importlib

import tinker

import versions
from harness import CHECKS, Check

# The last module waits for the background work of the SDK, most of which is done by then.
MODULES = (
    "check_service",
    "check_losses",
    "check_optimizer",
    "check_training",
    "check_checkpoints",
    "check_listing",
    "check_sampling",
    "check_sampler_clients",
    "check_faults",
    "check_recovery",
    "check_external",
    "check_absent",
    "check_cli",
    "check_background",
)


def checks() -> list[Check]:
    """Return the checks that the installed version of the SDK can run."""
    for module in MODULES:
        importlib.import_module(module)
    traits = versions.traits(tinker.__version__)
    return [check for check in CHECKS if check.needs is None or traits[check.needs]]
