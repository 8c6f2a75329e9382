# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""What RestClient lists and changes."""

import io
import json
import tarfile
import urllib.request

import tinker

from harness import check, require, require_equal, require_raises
from lab import train


def _saved(lab, count: int = 3):
    """Return a model with a few states and one save for samplers, the oldest first."""
    trainer = lab.trainer()
    paths = [trainer.save_state(lab.name("list")).result().path for _ in range(count)]
    return trainer, [*paths, trainer.save_weights_for_sampler(lab.name("list")).result().path]


def _paths(answer) -> list[str]:
    return [one.tinker_path for one in answer.checkpoints]


@check("list: checkpoints of a run")
async def checkpoints_of_a_run(lab):
    trainer, paths = _saved(lab)
    answers = [
        lab.rest.list_checkpoints(trainer.model_id).result(),
        await lab.rest.list_checkpoints_async(trainer.model_id),
    ]
    for answer in answers:
        require_equal(sorted(_paths(answer)), sorted(paths), "the checkpoints")
        kinds = {one.tinker_path: (one.checkpoint_type, one.checkpoint_id) for one in answer.checkpoints}
        require_equal(kinds[paths[0]], ("training", paths[0].split("/", 3)[3]), "what a state is listed as")
        require_equal(kinds[paths[-1]], ("sampler", paths[-1].split("/", 3)[3]), "what sampler weights are listed as")
        require(all(one.size_bytes > 0 and not one.public for one in answer.checkpoints), "sizes or flags are wrong")


@check("list: all checkpoints, in pages")
async def all_checkpoints(lab):
    _, paths = _saved(lab)
    found, offset = [], 0
    while True:
        page = lab.rest.list_user_checkpoints(limit=7, offset=offset).result()
        require(len(page.checkpoints) <= 7, f"a page of 7 has {len(page.checkpoints)} rows")
        found += _paths(page)
        offset += 7
        if offset >= page.cursor.total_count:
            break
    require_equal(len(set(found)), len(found), "the number of different rows")
    require(set(paths) <= set(found), "not all checkpoints are listed")
    first = await lab.rest.list_user_checkpoints_async(limit=7)
    require_equal(_paths(first), found[:7], "the first page")


@check("list: runs, in pages")
async def runs(lab):
    newest = [lab.trainer().model_id for _ in range(3)][::-1]
    answer = lab.rest.list_training_runs(limit=2).result()
    require_equal([run.training_run_id for run in answer.training_runs], newest[:2], "the newest runs")
    answer = await lab.rest.list_training_runs_async(limit=2, offset=1)
    require_equal([run.training_run_id for run in answer.training_runs], newest[1:], "the runs after the newest")
    require(answer.cursor.total_count >= 3, f"{answer.cursor.total_count} runs are counted")


@check("show: a run")
async def one_run(lab):
    trainer, paths = _saved(lab)
    train(trainer)
    answers = [
        lab.rest.get_training_run(trainer.model_id).result(),
        await lab.rest.get_training_run_async(trainer.model_id),
        lab.rest.get_training_run_by_tinker_path(paths[0]).result(),
        await lab.rest.get_training_run_by_tinker_path_async(paths[-1]),
    ]
    for run in answers:
        require_equal((run.training_run_id, run.base_model, run.lora_rank), (trainer.model_id, lab.model, 4), "the run")
        require_equal(run.last_checkpoint.tinker_path, paths[-2], "the newest state")
        require_equal(run.last_sampler_checkpoint.tinker_path, paths[-1], "the newest sampler weights")
        require(not run.corrupted, "the run is called corrupted")
    error = require_raises(tinker.NotFoundError, lambda: lab.rest.get_training_run("no-such-run").result())
    require_equal(error.status_code, 404, "the status")


@check("show: what a checkpoint needs", needs="weights_info")
def weights_info(lab):
    trainer = lab.trainer(rank=6, train_mlp=False)
    path = trainer.save_state(lab.name("info")).result().path
    info = lab.rest.get_weights_info_by_tinker_path(path).result()
    require_equal((info.base_model, info.is_lora, info.lora_rank), (lab.model, True, 6), "the model")
    require_equal((info.train_mlp, info.train_attn, info.train_unembed), (False, True, True), "the matrices")


@check("show: a sampler")
async def samplers(lab):
    trainer = lab.trainer()
    path = trainer.save_weights_for_sampler(lab.name("sampler")).result().path
    made = trainer.create_sampling_client(path)
    named = made.result() if hasattr(made, "result") else made
    answers = [
        lab.rest.get_sampler(named._sampling_session_id).result(),
        await lab.rest.get_sampler_async(named._sampling_session_id),
    ]
    for answer in answers:
        require_equal((answer.base_model, answer.model_path), (lab.model, path), "the sampler")


@check("publish and unpublish")
async def publishing(lab):
    trainer, paths = _saved(lab, 1)

    def public() -> list[str]:
        listed = lab.rest.list_checkpoints(trainer.model_id).result().checkpoints
        return [one.tinker_path for one in listed if one.public]

    lab.rest.publish_checkpoint_from_tinker_path(paths[0]).result()
    require_equal(public(), [paths[0]], "what is public")
    await lab.rest.unpublish_checkpoint_from_tinker_path_async(paths[0])
    require_equal(public(), [], "what is public")
    await lab.rest.publish_checkpoint_from_tinker_path_async(paths[1])
    require_equal(public(), [paths[1]], "what is public")
    lab.rest.unpublish_checkpoint_from_tinker_path(paths[1]).result()
    require_equal(public(), [], "what is public")


@check("delete a checkpoint")
async def deleting(lab):
    trainer, paths = _saved(lab)
    ids = [path.split("/", 3)[3] for path in paths]
    lab.rest.delete_checkpoint(trainer.model_id, ids[0]).result()
    await lab.rest.delete_checkpoint_async(trainer.model_id, ids[1])
    lab.rest.delete_checkpoint_from_tinker_path(paths[2]).result()
    await lab.rest.delete_checkpoint_from_tinker_path_async(paths[3])
    require_equal(_paths(lab.rest.list_checkpoints(trainer.model_id).result()), [], "what is left")
    require_raises(tinker.NotFoundError, lambda: lab.rest.delete_checkpoint_from_tinker_path(paths[0]).result())


@check("archive of a checkpoint", needs="archive")
async def archives(lab):
    trainer, paths = _saved(lab, 1)
    run, short = trainer.model_id, paths[0].split("/", 3)[3]
    answers = [
        lab.rest.get_checkpoint_archive_url(run, short).result(),
        await lab.rest.get_checkpoint_archive_url_async(run, short),
        lab.rest.get_checkpoint_archive_url_from_tinker_path(paths[1]).result(),
        await lab.rest.get_checkpoint_archive_url_from_tinker_path_async(paths[1]),
    ]
    for answer in answers:
        with urllib.request.urlopen(answer.url, timeout=60) as reply:  # the link needs no key
            archive = io.BytesIO(reply.read())
        with tarfile.open(fileobj=archive) as files:
            config = json.load(files.extractfile("adapter_config.json"))
        require_equal((config["base_model"], config["lora_rank"]), (lab.model, 4), "the adapter")
