# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The service itself, models and their options, sessions, tokenizers."""

import inspect

import tinker
from tinker.lib.internal_client_holder import InternalClientHolder
from tinker.lib.public_interfaces.rest_client import RestClient

import versions
from harness import check, require, require_close, require_different, require_equal, require_raises
from environment import observe, session_of, settled, train


@check()
def the_table_of_versions_holds(env):
    """Every trait in the version's row matches the SDK; audit_async is checked where it is called."""
    sample = inspect.signature(tinker.SamplingClient.sample).parameters
    found = {
        "archive": hasattr(RestClient, "get_checkpoint_archive_url"),
        "session_close": hasattr(tinker.ServiceClient, "close"),
        "console_url": hasattr(tinker.ServiceClient, "get_console_url"),
        "sampler_handle": hasattr(tinker.SamplingClient, "get_sampler_handle"),
        "weights_info": hasattr(RestClient, "get_weights_info_by_tinker_path"),
        "rest_capabilities": hasattr(RestClient, "get_server_capabilities"),
        "sequence_ids": "sequence_id" in tinker.types.SampledSequence.__dataclass_fields__,
        "prompt_options": "target_prompt_logprobs" in sample,
        "external_weights": hasattr(tinker.TrainingClient, "save_weights_external"),
        "checkpoint_metadata": "user_metadata" in inspect.signature(tinker.TrainingClient.save_state).parameters,
        "copy_weights": hasattr(RestClient, "copy_weights"),
        "newer_losses": "gspo" in tinker.types.LossFnType.__args__,
        "storage_usage": hasattr(RestClient, "get_current_checkpoint_storage_usage"),
        "search": hasattr(RestClient, "search_sessions"),
        "whoami": hasattr(RestClient, "whoami"),
        "optimizers": hasattr(tinker, "DimuonParams"),
        "sample_cancel": hasattr(InternalClientHolder, "enqueue_cancel"),
    }
    shown = {trait: value for trait, value in env.traits.items() if trait in found}
    require_equal(shown, found, f"the row of {tinker.__version__} in versions.py")
    require(tinker.__version__ in versions.TRAITS, f"versions.py has no row for {tinker.__version__}")


@check("capabilities")
async def capabilities(env):
    answers = [env.service.get_server_capabilities(), await env.service.get_server_capabilities_async()]
    if env.traits["rest_capabilities"]:
        answers.append(await env.rest.get_server_capabilities())
    for answer in answers:
        found = {model.model_name: model for model in answer.supported_models}
        require(env.model in found, f"the server lists {sorted(found)}, not {env.model}")
        context = found[env.model].max_context_length
        require(context is None or context > 0, f"the context of {env.model} is {context} tokens")


@check("a wrong key is refused")
def wrong_key(env):
    service = env.new_service(api_key="tml-not-the-key")
    require_raises(tinker.AuthenticationError, service.get_server_capabilities)


@check("create a LoRA model: rank")
def lora_rank(env):
    for rank in (2, 16):
        info = env.trainer(rank=rank).get_info()
        require_equal(info.lora_rank, rank, "the rank")
        require_equal(info.model_data.model_name, env.model, "the base model")
        require(info.is_lora, "the model is not a LoRA model")


@check("create a LoRA model: seed honoured")
def lora_seed(env):
    looks = []
    for seed in (11, 11, 12):
        trainer = env.trainer(seed=seed)
        train(trainer)
        looks.append(observe(trainer))
    require_close(looks[1], looks[0], "a model with the same seed", relative=1e-3)
    require_different(looks[2], looks[0], "a model with another seed after a step")


@check("create a LoRA model: which matrices")
def lora_matrices(env):
    flags = ("train_mlp", "train_attn", "train_unembed")
    looks = []
    for only in flags:
        trainer = env.trainer(**{flag: flag == only for flag in flags})
        base = observe(trainer)
        train(trainer)
        looks.append(observe(trainer))
        require_different(looks[-1], base, f"a step with {only} alone")
    for other in looks[1:]:
        require_different(other, looks[0], "a step with other matrices")


@check()
def lora_matrices_have_their_sizes(env):
    """Each matrix of n by m has rank * (n + m) parameters: two layers of width 64 and 272, vocabulary 260."""
    sizes = {
        "train_attn": 2 * 4 * (64 + 64),
        "train_mlp": 2 * 2 * (64 + 272),
        "train_unembed": 64 + 260,
    }
    for only, size in sizes.items():
        trainer = env.trainer(rank=3, **{flag: flag == only for flag in sizes})
        require_equal(env.parameters(trainer).size, 3 * size, f"the number of parameters with {only}")
    require_equal(env.parameters(env.trainer(rank=3)).size, 3 * sum(sizes.values()), "the number of all")


@check("create a LoRA model: user metadata")
def lora_metadata(env):
    trainer = env.trainer(user_metadata={"purpose": "conformance", "n": "1"})
    run = env.rest.get_training_run(trainer.model_id).result()
    require_equal(run.user_metadata, {"purpose": "conformance", "n": "1"}, "the metadata")


@check()
def lora_rejected(env):
    """Invalid adapters are rejected as the caller's error."""
    create = env.service.create_lora_training_client
    error = require_raises(tinker.RequestFailedError, lambda: settled(create(base_model="no/such-model")))
    require_equal(error.category, tinker.types.RequestErrorCategory.User, "the category")
    error = require_raises(tinker.RequestFailedError, lambda: settled(create(base_model=env.model, rank=4096)))
    require("4096" in str(error), f"the error does not name the rank: {error}")


@check("create a LoRA model: optimizer named", needs="optimizers")
def lora_optimizer(env):
    trainer = env.trainer(optimizer=tinker.AdamOptimizerConfig())
    before = observe(trainer)
    train(trainer)
    require_different(observe(trainer), before, "a step of Adam")


@check(needs="optimizers")
def another_optimizer_is_rejected(env):
    """The server must not use the settings of another optimizer as those of Adam."""
    create = env.service.create_lora_training_client
    wanted = tinker.DimuonOptimizerConfig()
    require_raises(tinker.BadRequestError, lambda: settled(create(base_model=env.model, optimizer=wanted)))
    step = tinker.DimuonParams(learning_rate=1e-2)
    require_raises(tinker.BadRequestError, lambda: env.trainer().optim_step(step).result())


@check("create a LoRA model: async")
async def lora_async(env):
    trainer = await env.service.create_lora_training_client_async(base_model=env.model, rank=4, seed=3)
    info = await trainer.get_info_async()
    require_equal(info.model_id, trainer.model_id, "the model's id")
    require_equal(info.lora_rank, 4, "the rank")


@check()
def tokenizers(env):
    """The hub that HF_ENDPOINT names is tinkersim; bytes are tokens there, whatever the text."""
    line = "Grüße: 27 + 58 = 85\n\n"
    for client in (env.trainer(), env.base_sampler()):
        tokenizer = client.get_tokenizer()
        require_equal(tokenizer.encode(line), list(line.encode()), "the tokens")
        require_equal(tokenizer.decode(list(line.encode())), line, "the text")
        require_equal(tokenizer.encode("<|end|>"), [256], "the special token")
        require_equal(tokenizer.eos_token_id, 256, "the end token")


@check("sessions: list and show")
async def sessions(env):
    trainer, sampler = env.trainer(), env.base_sampler()
    own = session_of(trainer)
    lists = [env.rest.list_sessions(limit=100).result(), await env.rest.list_sessions_async(limit=100)]
    shown = [env.rest.get_session(own).result(), await env.rest.get_session_async(own)]
    for answer in lists:
        require(own in answer.sessions, f"{own} is not among the {len(answer.sessions)} sessions")
    for answer in shown:
        require(trainer.model_id in answer.training_run_ids, "the session does not list its model")
        require(sampler._sampling_session_id in answer.sampler_ids, "the session does not list its sampler")


@check("sessions: project")
async def projects(env):
    service = env.new_service()
    first = settled(service.create_lora_training_client(base_model=env.model, rank=2))
    env.rest.assign_session_project(session_of(first), "project-a").result()
    second = settled(service.create_lora_training_client(base_model=env.model, rank=2))
    await env.rest.assign_session_project_async(session_of(first), "project-b")
    third = settled(service.create_lora_training_client(base_model=env.model, rank=2))
    for project, member in (("project-a", second), ("project-b", third)):
        runs = env.rest.list_training_runs(project_id=project).result().training_runs
        require_equal([run.training_run_id for run in runs], [member.model_id], f"the runs of {project}")


@check("sessions: finish", needs="session_close")
def closing(env):
    service = env.new_service()
    settled(service.create_lora_training_client(base_model=env.model, rank=2))
    service.close("success", "the check is over").result()
    require_raises(RuntimeError, lambda: service.create_lora_training_client(base_model=env.model))
    with env.new_service() as other:
        settled(other.create_sampling_client(base_model=env.model))


@check(needs="console_url")
def console_urls(env):
    trainer = env.trainer()
    require(session_of(trainer) in env.service.get_console_url(), "the session's URL does not name it")
    require(trainer.model_id in trainer.get_console_url(), "the model's URL does not name it")
