# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Samples, each parameter of them, and log-probabilities."""

import math

import numpy as np
import tinker
from tinker import types

from harness import check, require, require_close, require_equal, require_raises
from environment import observe, prompt, sample, text, tokens, train

QUESTION = text("User: What is 27 + 58?\n\nAssistant:")


def distribution(client, ids: list[int], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeliest tokens after some others, and their log-probabilities, the likeliest first.

    They are those of the last position of the prompt with any token after it.
    """
    answer = sample(client, [*ids, ids[0]], max_tokens=1, topk_prompt_logprobs=width)
    row = answer.topk_prompt_logprobs[-1]
    return np.array([token for token, _ in row]), np.array([value for _, value in row])


@check("sample: num_samples")
def num_samples(env):
    answer = sample(env.base_sampler(), QUESTION, count=8, max_tokens=6, seed=1)
    require_equal(len(answer.sequences), 8, "the number of samples")
    require(len({tuple(one.tokens) for one in answer.sequences}) > 1, "all samples of a request are the same")
    for one in answer.sequences:
        require_equal(len(one.tokens), len(one.logprobs), "the number of log-probabilities")
        require(all(value <= 0 for value in one.logprobs), "a log-probability is positive")


@check("sample: seed")
def seeds(env):
    drawn = [
        [tuple(one.tokens) for one in sample(env.base_sampler(), QUESTION, count=4, max_tokens=8, seed=seed).sequences]
        for seed in (5, 5, 6)
    ]
    require_equal(drawn[1], drawn[0], "what the same seed draws")
    require(drawn[2] != drawn[0], "another seed draws the same")


@check("sample: max_tokens")
def max_tokens(env):
    for count in (1, 5):
        for one in sample(env.base_sampler(), tokens(12), count=4, max_tokens=count, seed=2).sequences:
            require(len(one.tokens) <= count, f"{len(one.tokens)} tokens, want at most {count}")
            if one.stop_reason == "length":
                require_equal(len(one.tokens), count, "the tokens of a sample that was cut")


@check("sample: stop strings")
def stop_strings(env):
    client = env.base_sampler()
    free = sample(client, QUESTION, count=6, max_tokens=12, seed=3).sequences
    stop = env.word(int(free[0].tokens[0]))
    cut = sample(client, QUESTION, count=6, max_tokens=12, seed=3, stop=[stop]).sequences
    require_equal(len(cut[0].tokens), 1, "the tokens up to a stop string that comes first")
    require_equal(cut[0].stop_reason, "stop", "why it ended")
    for one, other in zip(free, cut, strict=True):
        count = len(other.tokens)
        require_equal(list(other.tokens), list(one.tokens)[:count], "a sample as far as it goes")
        whole, begun = ("".join(map(env.word, map(int, ids))) for ids in (one.tokens, other.tokens[:-1]))
        require(stop not in begun, "a sample continues after its stop string")
        require(stop not in whole or other.stop_reason == "stop", "a sample was not ended by its stop string")


@check("sample: stop tokens")
def stop_tokens(env):
    client = env.base_sampler()
    free = sample(client, tokens(10), count=4, max_tokens=10, seed=3).sequences
    stop = int(free[0].tokens[1])
    cut = sample(client, tokens(10), count=4, max_tokens=10, seed=3, stop=[stop]).sequences
    end = list(free[0].tokens).index(stop) + 1
    require_equal(list(cut[0].tokens), list(free[0].tokens)[:end], "a sample up to its stop token")
    require_equal(cut[0].stop_reason, "stop", "why it ended")


@check("sample: temperature 0")
def greedy(env):
    client = env.base_sampler()
    answer = sample(client, QUESTION, count=3, max_tokens=4, temperature=0.0)
    require_equal(len({tuple(one.tokens) for one in answer.sequences}), 1, "the number of different samples")
    context = list(QUESTION)
    for token in answer.sequences[0].tokens:
        require_equal(int(token), int(distribution(client, context, 1)[0][0]), "the likeliest token")
        context.append(int(token))


def _require_frequencies(drawn: list[int], ids: np.ndarray, wanted: np.ndarray, what: str) -> None:
    """Check that frequencies are within 5 standard deviations. Samples are seeded, so the check is deterministic."""
    counts = np.array([drawn.count(token) for token in ids])
    require_equal(int(counts.sum()), len(drawn), f"how many draws {what} allows")
    spread = np.sqrt(len(drawn) * wanted * (1 - wanted)) + 1
    excess = np.abs(counts - len(drawn) * wanted) / spread
    worst = int(excess.argmax())
    require(
        excess[worst] < 5,
        f"{what}: token {ids[worst]} was drawn {counts[worst]} times of {len(drawn)}, "
        f"want about {len(drawn) * wanted[worst]:.1f}",
    )


def _first_tokens(client, count: int, **options) -> list[int]:
    answer = sample(client, QUESTION[:20], count=count, max_tokens=1, seed=17, **options)
    return [int(one.tokens[0]) for one in answer.sequences]


@check()
def draws_follow_the_distribution(env):
    client = env.base_sampler()
    ids, values = distribution(client, QUESTION[:20], 260)
    require_close(np.exp(values).sum(), 1.0, "the sum of the probabilities", relative=1e-4)
    for temperature in (0.5, 1.0, 2.0):
        weights = np.exp(values / temperature)
        drawn = _first_tokens(client, 1000, temperature=temperature)
        _require_frequencies(drawn, ids, weights / weights.sum(), f"temperature {temperature}")


@check("sample: temperature")
def temperature(env):
    client = env.base_sampler()
    kinds = {value: len(set(_first_tokens(client, 200, temperature=value))) for value in (0.2, 1.0, 3.0)}
    require(kinds[0.2] < kinds[1.0] < kinds[3.0], f"the number of different tokens by temperature is {kinds}")


@check("sample: top_k")
def top_k(env):
    client = env.base_sampler()
    ids, values = distribution(client, QUESTION[:20], 3)
    drawn = _first_tokens(client, 400, top_k=3, temperature=2.0)
    require(set(drawn) <= set(ids.tolist()), f"drawn were {sorted(set(drawn))}, want only {ids.tolist()}")
    weights = np.exp(values / 2)
    _require_frequencies(drawn, ids, weights / weights.sum(), "top_k 3 at temperature 2")


@check("sample: top_p")
def top_p(env):
    client = env.base_sampler()
    ids, values = distribution(client, QUESTION[:20], 20)
    share = np.exp(values).cumsum()
    bound = float(share[2] - 1e-4)  # what three tokens, and not two, have together
    drawn = _first_tokens(client, 400, top_p=bound)
    require(set(drawn) <= set(ids[:3].tolist()), f"drawn were {sorted(set(drawn))}, want only {ids[:3].tolist()}")
    weights = np.exp(values[:3])
    _require_frequencies(drawn, ids[:3], weights / weights.sum(), f"top_p {bound:.3f}")


@check("prompt log-probs")
def prompt_logprobs(env):
    trainer = env.trainer()
    train(trainer, steps=2)
    ids = tokens(20)
    answer = sample(env.sampler_of(trainer), ids, max_tokens=1, include_prompt_logprobs=True)
    require_equal(len(answer.prompt_logprobs), 20, "the number of log-probabilities")
    require_equal(answer.prompt_logprobs[0], None, "the first")
    require_close(answer.prompt_logprobs[1:], observe(trainer, ids), "the others", relative=0.02, absolute=0.02)
    without = sample(env.base_sampler(), ids, max_tokens=1)
    require_equal(without.prompt_logprobs, None, "what is returned when they are not asked for")


@check("top-k prompt log-probs")
def topk_prompt_logprobs(env):
    ids = tokens(16)
    answer = sample(env.base_sampler(), ids, max_tokens=1, include_prompt_logprobs=True, topk_prompt_logprobs=4)
    require_equal(
        (len(answer.topk_prompt_logprobs), answer.topk_prompt_logprobs[0]), (16, None), "the rows, and the first"
    )
    for position, row in enumerate(answer.topk_prompt_logprobs[1:], start=1):
        require_equal(len(row), 4, f"the width of row {position}")
        values = [value for _, value in row]
        require(values == sorted(values, reverse=True), f"row {position} does not begin with the likeliest")
        own = answer.prompt_logprobs[position]
        among = dict(row).get(ids[position])
        require(among is None or math.isclose(among, own, abs_tol=1e-4), f"row {position} contradicts the prompt's")
        require(among is not None or own <= values[-1] + 1e-4, f"row {position} leaves a likelier token out")


@check("compute_logprobs equals the sampled log-probs")
def sampled_logprobs(env):
    trainer = env.trainer()
    train(trainer, steps=3)
    client = env.sampler_of(trainer)
    for options in ({}, {"temperature": 0.5}, {"top_k": 5}):
        one = sample(client, QUESTION, max_tokens=10, seed=4, **options).sequences[0]
        found = client.compute_logprobs(prompt([*QUESTION, *map(int, one.tokens)])).result()
        require_close(found[len(QUESTION) :], one.logprobs, f"log-probabilities with {options}", absolute=1e-3)


@check("sampled log-probs are close to a forward pass")
def sampled_and_trained_logprobs(env):
    trainer = env.trainer()
    train(trainer, steps=3)
    one = sample(env.sampler_of(trainer), QUESTION, max_tokens=10, seed=4).sequences[0]
    found = observe(trainer, [*QUESTION, *map(int, one.tokens)])[len(QUESTION) - 1 :]
    require_close(found, one.logprobs, "log-probabilities of a forward pass", relative=0.02, absolute=0.05)


@check("sample: async")
async def sampling_async(env):
    client = env.base_sampler()
    params = types.SamplingParams(max_tokens=4, seed=8)
    drawn = await client.sample_async(prompt(QUESTION), 2, params)
    same = client.sample(prompt(QUESTION), 2, params).result()
    require_equal(len(drawn.sequences), 2, "the number of samples")
    require_equal(
        [list(one.tokens) for one in drawn.sequences], [list(one.tokens) for one in same.sequences], "the tokens"
    )
    found = await client.compute_logprobs_async(prompt(QUESTION))
    require_close(found[1:], client.compute_logprobs(prompt(QUESTION)).result()[1:], "the log-probabilities")


@check("sample: what is malformed is refused")
def malformed_samples_are_rejected(env):
    client = env.base_sampler()
    wrong = ({"top_p": 0.0}, {"top_p": 1.5}, {"temperature": -1.0}, {"max_tokens": 0}, {"top_k": -5})
    for options in wrong:
        refused = (tinker.BadRequestError, tinker.RequestFailedError, tinker.UnprocessableEntityError)
        require_raises(refused, lambda: sample(client, QUESTION, **{"max_tokens": 2, **options}))


@check()
def the_context_ends_a_sample(env):
    """A prompt that is four tokens shorter than the context leaves room for four."""
    listed = env.service.get_server_capabilities().supported_models
    context = next(model.max_context_length for model in listed if model.model_name == env.model)
    client = env.base_sampler()
    answer = sample(client, tokens(context - 4), max_tokens=50, seed=1)
    require(len(answer.sequences[0].tokens) <= 4, f"{len(answer.sequences[0].tokens)} tokens were drawn")
    error = require_raises(tinker.BadRequestError, lambda: sample(client, tokens(context), max_tokens=1))
    require(str(context) in str(error), f"the error does not name the length: {error}")
