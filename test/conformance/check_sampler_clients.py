# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Sampling clients: their creation, names and copies, and the requirements of newer SDKs."""

import pickle

import numpy as np
import tinker
from tinker import types

from check_sampling import QUESTION
from harness import check, require, require_equal, require_raises
from environment import prompt, sample, session_of, settled, train


def _draw(client) -> list[int]:
    return list(map(int, sample(client, QUESTION, max_tokens=8, seed=21).sequences[0].tokens))


@check("sampling clients: async")
async def sampler_clients_async(env):
    trainer = env.trainer()
    train(trainer)
    path = trainer.save_weights_for_sampler(env.name("async")).result().path
    made = [
        await env.service.create_sampling_client_async(model_path=path),
        await trainer.create_sampling_client_async(path),
        await trainer.save_weights_and_get_sampling_client_async(),
    ]
    drawn = [_draw(client) for client in made]
    require_equal(drawn[1:], [drawn[0]] * 2, "what clients of the same weights draw")
    base = await env.service.create_sampling_client_async(base_model=env.model)
    require_equal(await base.get_base_model_async(), env.model, "the base model")


@check("sampling clients: base model's name")
def base_models(env):
    trainer = env.trainer()
    for client in (env.base_sampler(), env.sampler_of(trainer)):
        require_equal(client.get_base_model(), env.model, "the base model")


@check()
def sampling_from_a_state(env):
    """A training state returns the same samples as sampler weights saved at the same time."""
    trainer = env.trainer()
    train(trainer, steps=2)
    state = trainer.save_state(env.name("both")).result().path
    weights = trainer.save_weights_for_sampler(env.name("both")).result().path
    drawn = [_draw(settled(env.service.create_sampling_client(model_path=path))) for path in (state, weights)]
    require_equal(drawn[0], drawn[1], "what both draw")


@check("sampling clients: passed to other processes")
def sampler_clients_travel(env):
    """A copy draws the same samples under its own sequence numbers, which may exceed 2^53."""
    client = env.base_sampler()
    copy = pickle.loads(pickle.dumps(client))
    require(copy._request_id_counter >= 10**9, "the copy counts as the original does")
    require_equal(_draw(copy), _draw(client), "what the copy draws")


@check("sampling clients: handles", needs="sampler_handle")
def sampler_handles(env):
    client = env.base_sampler()
    copy = tinker.SamplingClient.from_sampler_handle(client.get_sampler_handle(), api_key=env.key)
    require_equal(_draw(copy), _draw(client), "what the copy draws")


@check("samples have ids", needs="sequence_ids")
def sequence_ids(env):
    answer = sample(env.base_sampler(), QUESTION, count=3, max_tokens=2, seed=1)
    ids = [one.sequence_id for one in answer.sequences]
    require_equal(len(set(ids)), 3, "the number of different ids")


@check("log-probabilities of the last tokens of a prompt", needs="prompt_options")
def prompt_suffix(env):
    """The last log-probabilities equal the whole prompt's, and the others are None. Limits are refused."""
    client, count = env.base_sampler(), len(QUESTION)
    params = types.SamplingParams(max_tokens=1)
    ask = lambda last, **options: client.sample(
        prompt(QUESTION), 1, params, include_prompt_logprobs=True, prompt_logprobs_last_n=last, **options
    ).result()
    whole = ask(None).prompt_logprobs
    part = ask(3, topk_prompt_logprobs=2)
    require_equal(part.prompt_logprobs, [None] * (count - 3) + whole[-3:], "the log-probabilities of the last 3")
    tops = [row is not None for row in part.topk_prompt_logprobs]
    require_equal(tops, [False] * (count - 3) + [True] * 3, "the tokens with alternatives")
    require_raises(tinker.BadRequestError, lambda: ask(count))


@check("log-probabilities of other tokens of a prompt", needs="prompt_options")
def prompt_targets(env):
    """Targets that are the prompt's own tokens have its log-probabilities; a cell of -1 has none."""
    client, params, tokens = env.base_sampler(), types.SamplingParams(max_tokens=1), prompt(QUESTION).to_ints()
    cells = np.array([[token, -1] for token in tokens[1:]])
    answer = client.sample(prompt(QUESTION), 1, params, target_prompt_logprobs=types.TensorData.from_numpy(cells)).result()
    got = answer.target_prompt_logprobs.to_numpy().reshape(cells.shape)
    require(np.allclose(got[:, 0], client.compute_logprobs(prompt(QUESTION)).result()[1:], atol=1e-5), f"the targets have {got}")
    require(not got[:, 1].any(), f"cells of -1 have {got[:, 1]}")


@check("likeliest alternatives to sampled tokens", needs="prompt_options")
def sample_alternatives(env):
    params = types.SamplingParams(max_tokens=4, temperature=0)
    one = env.base_sampler().sample(prompt(QUESTION), 1, params, topk_sample_logprobs=2).result().sequences[0]
    require_equal([row[0][0] for row in one.topk_logprobs], one.tokens, "the likeliest where the sample is greedy")
    require_equal({len(row) for row in one.topk_logprobs}, {2}, "the number of alternatives")


@check(needs="prompt_options")
def options_that_are_not_there_are_not_ignored(env):
    """Features that tinkersim lacks must return an error."""
    client, params = env.base_sampler(), types.SamplingParams(max_tokens=1)
    ask = lambda **options: client.sample(prompt(QUESTION), 1, params, **options).result()
    require_raises(tinker.BadRequestError, lambda: ask(prompt_alt_tokens_k=2))


@check()
def unknown_weights_are_rejected(env):
    create = env.service.create_sampling_client
    run = env.trainer().model_id
    require_raises(tinker.NotFoundError, lambda: settled(create(model_path=f"tinker://{run}/sampler_weights/none")))
    require_raises(tinker.BadRequestError, lambda: settled(create(model_path="tinker://nonsense")))
    require_raises(tinker.BadRequestError, lambda: settled(create(base_model="no/such-model")))
    require(session_of(env.trainer()) in run, "a model's id does not name its session")
