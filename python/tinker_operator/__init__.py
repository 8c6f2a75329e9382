# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Creates, follows and reads the TrainingRuns of a Kubernetes namespace.

    from tinker_operator import Client

    run = Client().create("run.yaml", name="fast")
    run.wait("Complete")
    run.metrics()["test/pass@1"].plot()
"""

from .client import Client
from .errors import Error, NotFound, Refused, RunFailed, WaitTimeout
from .run import Run

__all__ = ["Client", "Error", "NotFound", "Refused", "Run", "RunFailed", "WaitTimeout"]
