# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Save a checkpoint with the SDK, then print what the SDK lists whenever a line is read.

The first line that is printed has the paths of the state and of the sampler weights. Each later one has, by their paths,
which of the checkpoints are public.
"""

import json
import sys

import tinker

url, model = sys.argv[1:]
service = tinker.ServiceClient(base_url=url)
trainer = service.create_lora_training_client(base_model=model, rank=4).result()
state = trainer.save_state("edited").result().path
sampler = trainer.save_weights_for_sampler("edited").result().path
print(json.dumps([state, sampler]), flush=True)
rest = tinker.RestClient(base_url=url)
for _ in sys.stdin:
    listed = rest.list_user_checkpoints().result().checkpoints
    print(json.dumps({checkpoint.tinker_path: checkpoint.public for checkpoint in listed}), flush=True)
