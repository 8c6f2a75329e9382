#!/usr/bin/env python3
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Renders chat templates with jinja2, in the environment that transformers makes.

    templates.py    {"source", "variables", "date"} -> {"text"} or {"error"}, one line of JSON for each line
"""

import datetime
import functools
import json
import signal
import sys
import warnings

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


class Generation(Extension):
    """The tag around what the model has written; it leaves the text as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("written"), [], [], body).set_lineno(line)

    def written(self, caller):
        return caller()


class Dict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)


class Namespace(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


class Raised(jinja2.exceptions.TemplateError):
    pass


def raise_exception(message):
    raise Raised(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    out = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    out.filters["tojson"] = tojson
    out.globals["raise_exception"] = raise_exception
    out.globals["strftime_now"] = lambda format: NOW.strftime(format)
    out.globals["dict"] = Dict()
    out.globals["namespace"] = Namespace
    return out


def expire(*_):
    raise TimeoutError("too slow")


ENVIRONMENT = environment()


@functools.lru_cache(maxsize=4)
def compiled(source):
    return ENVIRONMENT.from_string(source)


def answer(question):
    try:
        signal.alarm(10)
        text = compiled(question["source"]).render(**json.loads(question["variables"]))
        signal.alarm(0)
        text.encode("utf-8", "strict")
        return {"text": text}
    except BaseException as e:  # whatever Python raises, the template has failed
        signal.alarm(0)
        if isinstance(e, KeyboardInterrupt):
            raise
        return {"error": f"{type(e).__name__}: {e}"[:300], "raised": isinstance(e, Raised)}


def main():
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, expire)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
