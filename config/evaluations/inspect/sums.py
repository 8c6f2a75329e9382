# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""A task of inspect-ai: sums as a conversation, scored by the text of the reply."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

SUMS = [("3+4=?", "7"), ("1+1=?", "2"), ("5+3=?", "8"), ("2+4=?", "6")]


@task
def sums():
    return Task(
        dataset=[Sample(input=question, target=answer) for question, answer in SUMS],
        solver=generate(),
        scorer=includes(),
        config=GenerateConfig(temperature=0, max_tokens=12),
    )
