# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""What RestClient lists and changes."""

import datetime
import io
import json
import tarfile
import urllib.request

import tinker

from harness import check, require, require_equal, require_raises
from environment import train


def _saved(env, count: int = 3):
    """Return a model with a few states and one save for samplers, the oldest first."""
    trainer = env.trainer()
    paths = [trainer.save_state(env.name("list")).result().path for _ in range(count)]
    return trainer, [*paths, trainer.save_weights_for_sampler(env.name("list")).result().path]


def _paths(answer) -> list[str]:
    return [one.tinker_path for one in answer.checkpoints]


@check("list: checkpoints of a run")
async def checkpoints_of_a_run(env):
    trainer, paths = _saved(env)
    answers = [
        env.rest.list_checkpoints(trainer.model_id).result(),
        await env.rest.list_checkpoints_async(trainer.model_id),
    ]
    for answer in answers:
        require_equal(sorted(_paths(answer)), sorted(paths), "the checkpoints")
        kinds = {one.tinker_path: (one.checkpoint_type, one.checkpoint_id) for one in answer.checkpoints}
        require_equal(kinds[paths[0]], ("training", paths[0].split("/", 3)[3]), "what a state is listed as")
        require_equal(kinds[paths[-1]], ("sampler", paths[-1].split("/", 3)[3]), "what sampler weights are listed as")
        require(all(one.size_bytes > 0 and not one.public for one in answer.checkpoints), "sizes or flags are wrong")


@check("list: all checkpoints, in pages")
async def all_checkpoints(env):
    _, paths = _saved(env)
    found, offset = [], 0
    while True:
        page = env.rest.list_user_checkpoints(limit=7, offset=offset).result()
        require(len(page.checkpoints) <= 7, f"a page of 7 has {len(page.checkpoints)} rows")
        found += _paths(page)
        offset += 7
        if offset >= page.cursor.total_count:
            break
    require_equal(len(set(found)), len(found), "the number of different rows")
    require(set(paths) <= set(found), "not all checkpoints are listed")
    first = await env.rest.list_user_checkpoints_async(limit=7)
    require_equal(_paths(first), found[:7], "the first page")


@check()
async def usage_is_billed_by_session(env):
    """At the hosted service it lags by hours, so that only tinkersim is asked."""
    name = env.name("bill")
    hour = datetime.datetime.now(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    service = env.new_service(user_metadata={"run": name})
    trainer = service.create_lora_training_client(base_model=env.model, rank=4)
    train(trainer)
    trainer.save_state(name).result()
    session = trainer.model_id.split(":train:")[0]
    window = (hour, hour + datetime.timedelta(hours=2))
    for answer in (env.rest.get_billing_usage(*window).result(), await env.rest.get_billing_usage_async(*window)):
        infos = {one.event_info.type: one.event_info for one in answer.data if one.session_id == session}
        require(infos["training"].token_count > 0, f"the session is billed for {infos}")
        require_equal(infos["checkpoint"].count, 1, "the checkpoints")
        require_equal(answer.sessions[session].user_metadata, {"run": name}, "the metadata")


@check("list: runs, in pages")
async def runs(env):
    newest = [env.trainer().model_id for _ in range(3)][::-1]
    answer = env.rest.list_training_runs(limit=2).result()
    require_equal([run.training_run_id for run in answer.training_runs], newest[:2], "the newest runs")
    answer = await env.rest.list_training_runs_async(limit=2, offset=1)
    require_equal([run.training_run_id for run in answer.training_runs], newest[1:], "the runs after the newest")
    require(answer.cursor.total_count >= 3, f"{answer.cursor.total_count} runs are counted")


@check("show: a run")
async def one_run(env):
    trainer, paths = _saved(env)
    train(trainer)
    answers = [
        env.rest.get_training_run(trainer.model_id).result(),
        await env.rest.get_training_run_async(trainer.model_id),
        env.rest.get_training_run_by_tinker_path(paths[0]).result(),
        await env.rest.get_training_run_by_tinker_path_async(paths[-1]),
    ]
    for run in answers:
        require_equal((run.training_run_id, run.base_model, run.lora_rank), (trainer.model_id, env.model, 4), "the run")
        require_equal(run.last_checkpoint.tinker_path, paths[-2], "the newest state")
        require_equal(run.last_sampler_checkpoint.tinker_path, paths[-1], "the newest sampler weights")
        require(not run.corrupted, "the run is called corrupted")
    error = require_raises(tinker.NotFoundError, lambda: env.rest.get_training_run("no-such-run").result())
    require_equal(error.status_code, 404, "the status")


@check("show: what a checkpoint needs", needs="weights_info")
def weights_info(env):
    trainer = env.trainer(rank=6, train_mlp=False)
    path = trainer.save_state(env.name("info")).result().path
    info = env.rest.get_weights_info_by_tinker_path(path).result()
    require_equal((info.base_model, info.is_lora, info.lora_rank), (env.model, True, 6), "the model")
    require_equal((info.train_mlp, info.train_attn, info.train_unembed), (False, True, True), "the matrices")


@check("show: a sampler")
async def samplers(env):
    trainer = env.trainer()
    path = trainer.save_weights_for_sampler(env.name("sampler")).result().path
    made = trainer.create_sampling_client(path)
    named = made.result() if hasattr(made, "result") else made
    answers = [
        env.rest.get_sampler(named._sampling_session_id).result(),
        await env.rest.get_sampler_async(named._sampling_session_id),
    ]
    for answer in answers:
        require_equal((answer.base_model, answer.model_path), (env.model, path), "the sampler")


@check("publish and unpublish")
async def publishing(env):
    trainer, paths = _saved(env, 1)

    def public() -> list[str]:
        listed = env.rest.list_checkpoints(trainer.model_id).result().checkpoints
        return [one.tinker_path for one in listed if one.public]

    env.rest.publish_checkpoint_from_tinker_path(paths[0]).result()
    require_equal(public(), [paths[0]], "what is public")
    await env.rest.unpublish_checkpoint_from_tinker_path_async(paths[0])
    require_equal(public(), [], "what is public")
    await env.rest.publish_checkpoint_from_tinker_path_async(paths[1])
    require_equal(public(), [paths[1]], "what is public")
    env.rest.unpublish_checkpoint_from_tinker_path(paths[1]).result()
    require_equal(public(), [], "what is public")


@check("delete a checkpoint")
async def deleting(env):
    trainer, paths = _saved(env)
    ids = [path.split("/", 3)[3] for path in paths]
    env.rest.delete_checkpoint(trainer.model_id, ids[0]).result()
    await env.rest.delete_checkpoint_async(trainer.model_id, ids[1])
    env.rest.delete_checkpoint_from_tinker_path(paths[2]).result()
    await env.rest.delete_checkpoint_from_tinker_path_async(paths[3])
    require_equal(_paths(env.rest.list_checkpoints(trainer.model_id).result()), [], "what is left")
    require_raises(tinker.NotFoundError, lambda: env.rest.delete_checkpoint_from_tinker_path(paths[0]).result())


@check("archive of a checkpoint", needs="archive")
async def archives(env):
    trainer, paths = _saved(env, 1)
    run, short = trainer.model_id, paths[0].split("/", 3)[3]
    answers = [
        env.rest.get_checkpoint_archive_url(run, short).result(),
        await env.rest.get_checkpoint_archive_url_async(run, short),
        env.rest.get_checkpoint_archive_url_from_tinker_path(paths[1]).result(),
        await env.rest.get_checkpoint_archive_url_from_tinker_path_async(paths[1]),
    ]
    for answer in answers:
        with urllib.request.urlopen(answer.url, timeout=60) as reply:  # the link needs no key
            archive = io.BytesIO(reply.read())
        with tarfile.open(fileobj=archive) as files:
            config = json.load(files.extractfile("adapter_config.json"))
        require_equal((config["base_model"], config["lora_rank"]), (env.model, 4), "the adapter")
