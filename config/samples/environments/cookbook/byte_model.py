# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The tokenizer of the simulator's model tinkersim/byte-136k for tinker-cookbook, with SETUP=byte_model:register.

The renderer byte_model is role_colon, whose replies end with the model's token <|end|>, too. A model of a hub needs no such
module: the cookbook finds its tokenizer by the name.
"""

import cookbook_episodes  # noqa: F401: first, since the cookbook may have to be imported without torch
from tinker_cookbook.renderers import register_renderer
from tinker_cookbook.renderers.role_colon import RoleColonRenderer
from tinker_cookbook.tokenizer_utils import register_tokenizer

MODEL = "tinkersim/byte-136k"
RENDERER = "byte_model"
SPECIAL = ("<|end|>", "<|bos|>", "<|pad|>", "<|reserved|>")
END = 256


class Tokenizer:
    """A token for each byte, and after them the special ones."""

    name_or_path = MODEL
    bos_token = None
    bos_token_id = None
    eos_token = SPECIAL[0]
    eos_token_id = END

    def encode(self, text, add_special_tokens=False):
        return list(text.encode())

    def decode(self, tokens, **_):
        tokens = [tokens] if isinstance(tokens, int) else tokens
        pieces = (bytes([each]) if each < END else SPECIAL[each - END].encode() for each in tokens)
        return b"".join(pieces).decode(errors="replace")


class Renderer(RoleColonRenderer):
    """role_colon for a model that ends its replies with a token."""

    def get_stop_sequences(self):
        return [END]

    def parse_response(self, response):
        if response and response[-1] == END:  # as well-formed as a reply that ends where the user's next message begins
            response = [*response[:-1], *self.tokenizer.encode("\n\nUser:")]
        return super().parse_response(response)


def register():
    register_tokenizer(MODEL, Tokenizer)
    register_renderer(RENDERER, lambda tokenizer, *_, **__: Renderer(tokenizer))
