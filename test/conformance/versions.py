# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""What differs between the versions of the SDK that the suite runs with.

A row holds from its version on, until the next row. A check that needs a trait which a version
does not have is not run with that version. The check `the_table_of_versions_holds` compares the
rows with the SDK itself, so that a new release which breaks one is noticed.
"""

TRAITS: dict[str, dict[str, bool]] = {
    "0.25.0": {
        "archive": True,  # RestClient.get_checkpoint_archive_url*, `tinker checkpoint download` of a tar
        "session_close": False,  # ServiceClient.close, and as a context manager
        "console_url": False,
        "sampler_handle": False,  # SamplingClient.get_sampler_handle
        "weights_info": True,  # RestClient.get_weights_info_by_tinker_path
        "rest_capabilities": False,  # RestClient.get_server_capabilities, `tinker model list`
        "sequence_ids": False,  # SampledSequence.sequence_id
        "prompt_options": False,  # SamplingClient.sample(target_prompt_logprobs=...) and its kin
        "external_weights": False,
        "checkpoint_metadata": False,  # save_state(user_metadata=...)
        "copy_weights": False,
        "newer_losses": False,  # gspo and stable_reinforce are names of losses
        "storage_usage": False,
        "search": False,
        "whoami": True,
        "optimizers": False,  # create_lora_training_client(optimizer=...)
        "sample_cancel": False,  # futures of samples that are canceled are reported to the server
        "audit_async": False,  # get_audit_log_async works: in 0.25 it runs on the wrong loop and fails by itself
    },
    "0.38.0": {
        "archive": False,
        "session_close": True,
        "console_url": True,
        "sampler_handle": True,
        "weights_info": True,
        "rest_capabilities": True,
        "sequence_ids": True,
        "prompt_options": True,
        "external_weights": True,
        "checkpoint_metadata": True,
        "copy_weights": True,
        "newer_losses": True,
        "storage_usage": True,
        "search": True,
        "whoami": True,
        "optimizers": True,
        "sample_cancel": True,
        "audit_async": True,
    },
}


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3])


def traits(version: str) -> dict[str, bool]:
    """Return the row that holds for a version."""
    rows = [row for row in TRAITS if _key(row) <= _key(version)]
    if not rows:
        raise SystemExit(f"tinker {version} is older than any version that the suite knows")
    return TRAITS[max(rows, key=_key)]
