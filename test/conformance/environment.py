# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The environment of checks: clients of one server, models and data."""

import functools
import inspect
import itertools

import numpy as np
import tinker
from tinker import types
from tinker.lib.public_interfaces.rest_client import RestClient

import versions
from harness import Untested
from simulator import Simulator

# With such a large eps, Adam's step is the gradient times the learning rate over eps.
_FLAT = 1e8


class Environment:
    """Clients, models and data for checks."""

    def __init__(self, url: str, key: str, model: str, admin: bool):
        self.url, self.key, self.model = url, key, model
        self.simulator = Simulator(url, key) if admin else None
        self.traits = versions.traits(tinker.__version__)
        self._names = itertools.count(1)

    @functools.cached_property
    def service(self) -> tinker.ServiceClient:
        """The client that most checks share; it has its own session."""
        return self.new_service()

    def new_service(self, **options) -> tinker.ServiceClient:
        """Return a new client, which creates its session when it first needs one."""
        return tinker.ServiceClient(base_url=self.url, api_key=options.pop("api_key", self.key), **options)

    @functools.cached_property
    def rest(self) -> RestClient:
        """The client of listings."""
        return self.service.create_rest_client()

    def reset_clients(self) -> None:
        """Drop the shared clients, whose session does not exist any more; the next access creates new ones."""
        for shared in ("service", "rest"):
            self.__dict__.pop(shared, None)

    def name(self, word: str) -> str:
        """Return a new name."""
        return f"conformance-{word}-{next(self._names)}"

    def word(self, token: int) -> str:
        """Return the text of a token. The tokenizers of other servers come from their hub, as in the SDK."""
        return chr(token) if self.simulator is not None else self.tokenizer.decode([token])

    @functools.cached_property
    def tokenizer(self):
        """The tokenizer of a server that is not tinkersim."""
        try:
            return self.base_sampler().get_tokenizer()
        except Exception as error:  # whatever a hub or a tokenizer raises
            raise Untested(f"no tokenizer: {error}") from error

    def trainer(self, *, seed: int = 7, rank: int = 4, **options) -> tinker.TrainingClient:
        """Return a new model."""
        made = self.service.create_lora_training_client(base_model=self.model, rank=rank, seed=seed, **options)
        return settled(made)

    def base_sampler(self) -> tinker.SamplingClient:
        """Return a new client that samples from the base model."""
        return settled(self.service.create_sampling_client(base_model=self.model))

    def sampler_of(self, trainer: tinker.TrainingClient) -> tinker.SamplingClient:
        """Return a new client that samples from the current weights of a model."""
        return settled(trainer.save_weights_and_get_sampling_client())

    def parameters(self, trainer: tinker.TrainingClient) -> np.ndarray:
        """Return the parameters of a model as float32. Only tinkersim supports this."""
        return self.simulator.parameters(trainer.save_state(self.name("look")).result().path)


def settled(client):
    """Return a client, or the result of a future, which newer SDKs return."""
    return client.result() if hasattr(client, "result") else client


async def awaited(value):
    """Await a value until it is not awaitable."""
    while inspect.isawaitable(value):
        value = await value
    return value


def session_of(client) -> str:
    """Return the id of a client's session."""
    return client.holder.get_session_id()


def tokens(count: int, seed: int = 1) -> list[int]:
    """Return random tokens that are printable bytes, which the vocabulary of any model has."""
    return np.random.default_rng(seed).integers(32, 127, size=count).tolist()


def text(line: str) -> list[int]:
    """Return the tokens of a text in tinkersim's vocabulary."""
    return list(line.encode())


def prompt(ids: list[int]) -> types.ModelInput:
    """Return an input of tokens."""
    return types.ModelInput.from_ints(ids)


def datum(ids: list[int], **inputs) -> types.Datum:
    """Return a datum that predicts each token from those before it, with loss inputs as float32 arrays.

    It is one shorter than the tokens. The inputs may include target_tokens.
    """
    arrays = {"target_tokens": np.asarray(inputs.pop("target_tokens", ids[1:]), dtype=np.int64)}
    arrays |= {name: np.asarray(values, dtype=np.float32) for name, values in inputs.items()}
    return types.Datum(
        model_input=prompt(ids[:-1]),
        loss_fn_inputs={name: types.TensorData.from_numpy(array) for name, array in arrays.items()},
    )


def logprobs(output: types.ForwardBackwardOutput) -> list[np.ndarray]:
    """Return the log-probabilities of each datum, float32, in their shapes."""
    found = []
    for record in output.loss_fn_outputs:
        field = record["logprobs"]
        found.append(np.asarray(field.data, dtype=np.float32).reshape(field.shape or (-1,)))
    return found


def observe(trainer: tinker.TrainingClient, ids: list[int] | None = None) -> np.ndarray:
    """Return the model's log-probabilities of some tokens, shape (N,)."""
    return logprobs(trainer.forward([datum(ids or tokens(24, seed=99))], "cross_entropy").result())[0]


def plain_steps(rate: float) -> types.AdamParams:
    """Return settings with which a step subtracts rate times the gradient, up to an error of 1e-8."""
    return types.AdamParams(
        learning_rate=rate * _FLAT, beta1=0.0, beta2=0.0, eps=_FLAT, weight_decay=0.0, grad_clip_norm=0.0
    )


def train(trainer: tinker.TrainingClient, steps: int = 1, seed: int = 3, rate: float = 3e-3) -> None:
    """Take some steps of Adam on tokens that the seed determines."""
    for step in range(steps):
        done = trainer.forward_backward([datum(tokens(16, seed=100 * seed + step))], "cross_entropy")
        moved = trainer.optim_step(types.AdamParams(learning_rate=rate))
        done.result()
        moved.result()


def sample(client: tinker.SamplingClient, ids: list[int], count: int = 1, **options):
    """Sample and return the response; options of sample() may be among those of SamplingParams."""
    extra = {name: options.pop(name) for name in ("include_prompt_logprobs", "topk_prompt_logprobs") if name in options}
    params = types.SamplingParams(**options)
    return client.sample(prompt(ids), num_samples=count, sampling_params=params, **extra).result()
