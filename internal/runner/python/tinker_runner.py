# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The program that runs a user's Python functions below the runner; docs/runner.md describes the protocol.

It needs Python 3.9 and nothing else. It takes calls on standard input and answers on what standard output was when it started;
what user code prints goes to standard error.
"""

import asyncio
import collections.abc
import contextvars
import hashlib
import importlib
import importlib.abc
import importlib.util
import inspect
import json
import linecache
import math
import numbers
import os
import random
import sys
import tempfile
import traceback
import types
import warnings

VERSION = 1
ARGUMENTS = {
    "reward": ("row", "reply"), "rewards": ("row", "replies"), "episode": ("row", "policy", "seed"), "agent": ("task", "base_url"),
}
CLASS = "Environment"
MAX_TEXT = 2000


class Fault(Exception):
    """What is wrong with user code, by the codes of the protocol."""

    def __init__(self, code, message, line=None, exception=None, question=None):
        super().__init__(message)
        self.error = {"code": code, "message": message[:MAX_TEXT]}
        if line:
            self.error["line"] = line
        if exception:
            self.error["exception"] = exception[:MAX_TEXT]
        if question:
            self.error["question"] = question


class PolicyError(Exception):
    """The caller has answered a question with an error."""

    def __init__(self, error):
        super().__init__(error.get("message", ""))
        self.code = error.get("code", "")
        self.error = error


class LimitReached(PolicyError):
    """A limit of the run forbids a request: the conversation has as many replies or tokens as it may have."""


class Reply:
    """A reply of the policy: text, messages, tool_calls, truncated, and tokens where they were asked for."""

    def __init__(self, fields):
        self.text = fields.get("text", "")
        self.messages = fields.get("messages", [])
        self.tool_calls = fields.get("tool_calls", [])
        self.truncated = fields.get("truncated", False)
        self._tokens = fields.get("tokens")

    @property
    def tokens(self):
        if self._tokens is None:
            raise AttributeError("The reply has no tokens. Ask for them in the environment.")
        return self._tokens

    def __repr__(self):
        return "Reply(text=%r, truncated=%r)" % (self.text, self.truncated)


class Policy:
    """What an episode asks the policy and its judges."""

    LimitReached = LimitReached

    def __init__(self, ask, scratch):
        self._ask = ask
        self.scratch = scratch

    async def chat(self, messages, *, tools=None, role=None, key=None):
        params = {"messages": standard_messages(messages), "tools": tools, "role": role, "key": key}
        return Reply(await self._ask("chat", without_none(params)))

    async def sample(self, tokens, *, stop=None, role=None, key=None):
        params = {"tokens": [int(token) for token in tokens], "stop": stop, "role": role, "key": key}
        return Reply(await self._ask("sample", without_none(params)))

    async def judge(self, messages, *, key=None):
        return Reply(await self._ask("judge", without_none({"messages": standard_messages(messages), "key": key})))


def without_none(fields):
    return {name: value for name, value in fields.items() if value is not None}


def standard_messages(messages):
    """Returns a list of messages: a text is one of the user's, and a reply stands for its messages."""
    if isinstance(messages, (str, dict, Reply)):
        messages = [messages]
    result = []
    for message in messages:
        if isinstance(message, Reply):
            result.extend(message.messages)
        elif isinstance(message, str):
            result.append({"role": "user", "content": message})
        else:
            result.append(message)
    return result


# Lines.


class Lines:
    """The two ends of the protocol."""

    def __init__(self):
        # User code, and what it starts, has neither of them as a standard file.
        self.source = os.dup(0)
        self.sink = os.dup(1)
        self.rest = bytearray()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        self.process = os.getpid()
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)

    def read(self):
        """Returns the next message, or None at the end."""
        while True:
            end = self.rest.find(b"\n")
            if end >= 0:
                line = bytes(self.rest[:end])
                del self.rest[:end + 1]
                return json.loads(line)
            if not self.fill():
                return None

    def fill(self):
        data = os.read(self.source, 1 << 20)
        self.rest += data
        return bool(data)

    def take(self):
        """Returns the messages that are complete."""
        *lines, last = bytes(self.rest).split(b"\n")
        self.rest[:] = last
        return [json.loads(line) for line in lines]

    def write(self, message):
        if os.getpid() != self.process:  # user code has forked and returned in the child
            os._exit(0)
        view = memoryview(json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        while view:
            view = view[os.write(self.sink, view):]


# User code.


def line_of(error, file):
    """Returns the line of user code that an exception comes from: in its file, or else the last one."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if frame.filename != __file__ and not frame.filename.startswith("<frozen ")]
    own = [frame for frame in frames if frame.filename == file] or frames
    if isinstance(error, SyntaxError) and error.lineno and (error.filename == file or not own):
        text = (error.text or "").strip()[:MAX_TEXT]
        return {"file": os.path.basename(error.filename or ""), "number": error.lineno, "text": text}
    if not own:
        return None
    return {"file": os.path.basename(own[-1].filename), "number": own[-1].lineno or 0, "text": (own[-1].line or "")[:MAX_TEXT]}


def last_line(error):
    return traceback.format_exception_only(type(error), error)[-1].strip()


def fault_of(error, file, code="exception"):
    """Returns the fault that an exception of user code is."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, asyncio.CancelledError):
        return Fault("cancelled", "The call was cancelled.")
    question = None
    if isinstance(error, MemoryError):
        code = "out_of_memory"
    elif isinstance(error, PolicyError):
        code, question = "question_failed", error.error
    elif isinstance(error, SyntaxError) and code == "import_error":
        code = "syntax_error"
    text = last_line(error)
    return Fault(code, "The code has raised an exception: " + text, line_of(error, file), text, question)


def load(config):
    """Returns the module with the user's code and the name of its file."""
    path = config.get("file")
    file = os.path.abspath(path) if path else None
    try:
        if not path:
            module = importlib.import_module(config["module"])
            return module, getattr(module, "__file__", None)
        with open(file, encoding="utf-8") as source:
            text = source.read()
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        name = os.path.splitext(os.path.basename(file))[0]
        module = types.ModuleType(name)
        module.__file__ = file
        sys.modules[name] = module
        exec(compile(text, file, "exec"), module.__dict__)
        return module, file
    except BaseException as error:  # noqa: B902: also SystemExit, which code may raise
        raise fault_of(error, file, "import_error") from None


def find(module, config):
    """Returns the user's function or class, and what it is for."""
    name = config.get("function")
    entry = config.get("entry")
    names = [name] if name else [entry, CLASS] if entry == "episode" else [entry] if entry else [*ARGUMENTS, CLASS]
    found = next((each for each in names if callable(getattr(module, each, None))), None)
    if not found:
        raise Fault("missing_function", "The code has no function %s." % " or ".join(names))
    function = getattr(module, found)
    if inspect.isclass(function):
        check_class(function)
        return adapt(function), "episode"
    entry = entry or (found if found in ARGUMENTS else "reward")
    check_arguments(function, found, ARGUMENTS[entry])
    if entry in ("episode", "agent") and not inspect.iscoroutinefunction(function):
        raise Fault("wrong_signature", "%s must be written with async def." % found, line_of_function(function))
    return function, entry


def check_class(cls):
    check_arguments(cls, cls.__name__, ())
    for method, arguments in (("start", ("self", "row", "seed")), ("step", ("self", "reply"))):
        function = getattr(cls, method, None)
        if not callable(function):
            raise Fault("missing_function", "The class %s has no method %s." % (cls.__name__, method))
        check_arguments(function, cls.__name__ + "." + method, arguments)


def check_arguments(function, name, arguments):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of what is written in C
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        wanted = "%s(%s)" % (name, ", ".join(arguments))
        message = "The function must take the arguments of %s, and takes %s: %s." % (wanted, signature, error)
        raise Fault("wrong_signature", message, line_of_function(function)) from None


def line_of_function(function):
    code = getattr(inspect.unwrap(function), "__code__", None)
    if not code:
        return None
    text = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return {"file": os.path.basename(code.co_filename), "number": code.co_firstlineno, "text": text}


def adapt(cls):
    """Returns the episode of a class with start and step.

    start(row, seed) returns the first messages. step(reply) returns (messages, reward, done), or a dict with these names,
    in which "tools" and metrics may stand too. The rewards of the steps are added.
    """

    async def episode(row, policy, seed):
        environment = cls()
        messages = standard_messages(await settle(environment.start(row, seed)))
        total, metrics, tools = 0, {}, None
        while True:
            reply = await policy.chat(messages, tools=tools)
            step = await settle(environment.step(reply))
            if not isinstance(step, dict):
                if not isinstance(step, tuple) or len(step) != 3:
                    raise Fault("wrong_type", "step must return (messages, reward, done) or a dict, not %s." % kind_of(step))
                step = dict(zip(("messages", "reward", "done"), step))
            step = dict(step)
            more, done, tools = step.pop("messages", None), step.pop("done", False), step.pop("tools", tools)
            total += number(step.pop("reward", 0) or 0, "The reward of a step")
            metrics.update(step)
            if done or not more:
                return {"reward": total, **metrics}
            messages = messages + reply.messages + standard_messages(more)

    return episode


async def settle(value):
    return await value if inspect.isawaitable(value) else value


# Results.


def kind_of(value):
    return type(value).__name__


def number(value, what):
    """Returns a finite int or float of what user code has returned."""
    if value is None:
        raise Fault("no_value", "%s is None." % what)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise Fault("not_awaited", "%s is a coroutine that was never awaited." % what)
    if not isinstance(value, numbers.Real) and callable(getattr(value, "item", None)):  # of numpy and torch
        try:
            value = value.item()
        except Exception:  # of an array with more than one element
            pass
    if not isinstance(value, numbers.Real):
        raise Fault("wrong_type", "%s must be a number, and is of type %s." % (what, kind_of(value)))
    if isinstance(value, numbers.Integral) and abs(int(value)) < 2**53:
        return int(value)
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise Fault("not_finite", "%s is %s, which is not finite." % (what, value))
    return value


def standard(value, entry="reward"):
    """Returns what a function has returned as the protocol has it: reward or rewards, correct, metrics."""
    if not isinstance(value, dict):
        result = {"reward": number(value, "The result")}
        if is_bool(value):
            result["correct"] = bool(value)
        return result
    result, metrics = {}, {}
    for name, each in value.items():
        if not isinstance(name, str):
            raise Fault("wrong_type", "The result has a key of type %s." % kind_of(name))
        if name == "rewards" and entry == "episode":
            if not isinstance(each, dict):
                raise Fault("wrong_type", "rewards must be a dict, and is of type %s." % kind_of(each))
            result[name] = {str(key): number(one, "The reward of %r" % key) for key, one in each.items()}
        elif name == "correct":
            if not is_bool(each):
                raise Fault("wrong_type", "correct must be a bool, and is of type %s." % kind_of(each))
            result[name] = bool(each)
        elif name == "reward":
            result[name] = number(each, "The reward")
        else:
            metrics[name] = number(each, "The metric %s" % name)
    if "reward" not in result and "rewards" not in result:
        raise Fault("no_value", "The result has no reward.")
    if metrics:
        result["metrics"] = metrics
    return result


def said(value, rewards):
    """Returns what an agent has returned: its rewards, or a text."""
    if rewards:
        return standard(value)
    if value is not None and not isinstance(value, str):
        raise Fault("wrong_type", "agent must return a text or None, and returns %s." % kind_of(value))
    return {"output": value}


def is_bool(value):
    return isinstance(value, bool) or kind_of(value) in ("bool_", "bool") and hasattr(value, "item")


def standard_list(values, replies):
    if values is None or isinstance(values, (str, bytes, dict)) or not hasattr(values, "__len__"):
        code = "no_value" if values is None else "wrong_type"
        raise Fault(code, "rewards must return a list, and returns %s." % kind_of(values))
    if len(values) != len(replies):
        raise Fault("wrong_type", "rewards returns %d results for %d replies." % (len(values), len(replies)))
    return [standard(value) for value in values]


# Calls.

unawaited = contextvars.ContextVar("unawaited", default=None)


def watch_coroutines():
    """Has each coroutine that is never awaited noted for the call that made it."""
    show = warnings.showwarning

    def note(message, category, filename, lineno, file=None, line=None):
        found = unawaited.get()
        if found is not None and "was never awaited" in str(message):
            found.append((str(message), os.path.basename(filename), lineno, linecache.getline(filename, lineno).strip()))
        show(message, category, filename, lineno, file, line)

    warnings.showwarning = note
    warnings.filterwarnings("always", message="coroutine .* was never awaited", category=RuntimeWarning)


class SeedNumpy(importlib.abc.MetaPathFinder):
    """Seeds numpy when user code imports it, since a function may do so in its first call."""

    seed = 0

    def find_spec(self, name, path=None, target=None):
        if name != "numpy":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                seed_numpy(self.seed)

            spec.loader.exec_module = exec_module
        return spec


def seed_numpy(seed):
    numpy = sys.modules.get("numpy")
    if hasattr(numpy, "random"):
        numpy.random.seed(seed % 2**32)


class Generators:
    """The states of random and of numpy in a task: what its calls draw does not depend on the tasks beside it.

    A task that another one starts has generators of its own, whose seed is a digest of the other's seed and of how many tasks
    that one has started before.
    """

    current = contextvars.ContextVar("generators", default=None)
    active = None  # those whose states random and numpy have now

    def __init__(self, seed, numpy):
        self.seed = seed
        self.numpy = numpy  # SeedNumpy
        self.random_state = self.numpy_state = None
        self.tasks = 0

    def child(self):
        text = "%d/%d" % (self.seed, self.tasks)
        self.tasks += 1
        return Generators(int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big"), self.numpy)

    def activate(self):
        if Generators.active is self:
            return
        if Generators.active:
            Generators.active.keep()
        Generators.active = self
        self.numpy.seed = self.seed
        if self.random_state:
            random.setstate(self.random_state)
        else:
            random.seed(self.seed)
        if self.numpy_state:
            sys.modules["numpy"].random.set_state(self.numpy_state)
        else:
            seed_numpy(self.seed)

    def keep(self):
        self.random_state = random.getstate()
        numpy = sys.modules.get("numpy")
        if hasattr(numpy, "random"):
            self.numpy_state = numpy.random.get_state()

    def forget(self):
        """Has nothing of them kept: the task has ended."""
        if Generators.active is self:
            Generators.active = None


class Steps(collections.abc.Coroutine):
    """A coroutine before each of whose steps its generators are activated."""

    def __init__(self, coroutine, generators):
        self.coroutine = coroutine
        self.generators = generators

    def __getattr__(self, name):  # cr_running and others, by which anyio and asyncio look at a coroutine
        return getattr(self.coroutine, name)

    def step(self, function, *arguments):
        Generators.current.set(self.generators)
        self.generators.activate()
        try:
            return function(*arguments)
        except BaseException:  # noqa: B902: the coroutine has ended
            self.generators.forget()
            raise

    def send(self, value):
        return self.step(self.coroutine.send, value)

    def throw(self, *error):
        return self.step(self.coroutine.throw, *error)

    def close(self):
        self.coroutine.close()

    def __await__(self):
        return self


def make_task(loop, coroutine, **options):
    """The task factory of the loop: what user code starts has generators of its own."""
    generators = Generators.current.get()
    if generators and inspect.iscoroutine(coroutine):
        coroutine = Steps(coroutine, generators.child())
    return asyncio.Task(coroutine, loop=loop, **options)


class Program:
    """The user's code and the calls that are open."""

    def __init__(self, lines):
        self.lines = lines
        self.tasks = {}
        self.questions = {}
        self.asked = 0
        self.numpy = SeedNumpy()

    def load(self, config):
        sys.meta_path.insert(0, self.numpy)
        self.seed(0)
        module, self.file = load(config)
        self.function, self.entry = find(module, config)
        self.is_async = inspect.iscoroutinefunction(self.function)

    def seed(self, seed):
        self.numpy.seed = seed
        random.seed(seed)
        seed_numpy(seed)

    def arguments(self, message):
        method, params = message["method"], message.get("params") or {}
        if method != self.entry:
            raise Fault("unknown_method", "The code is called by %s, and not by %s." % (self.entry, method))
        if method == "reward":
            return [params.get("row"), Reply(params["reply"])]
        if method == "rewards":
            return [params.get("row"), [Reply(reply) for reply in params["replies"]]]
        if method == "agent":
            return [params["task"], params["base_url"]]
        policy = Policy(lambda *question: self.ask(message["id"], *question), message.get("scratch", ""))
        return [params.get("row"), policy, message.get("seed", 0)]

    def finish(self, message, value, found):
        if found:
            text, file, lineno, line = found[0]
            raise Fault("not_awaited", text[:1].upper() + text[1:] + ".", {"file": file, "number": lineno, "text": line})
        if self.entry == "rewards":
            return standard_list(value, message["params"]["replies"])
        if self.entry == "agent":
            return said(value, message["params"].get("rewards"))
        return standard(value, self.entry)

    def answer(self, message, value=None, fault=None):
        if fault:
            self.lines.write({"type": "error", "id": message["id"], "error": fault.error})
        else:
            self.lines.write({"type": "result", "id": message["id"], "value": value})

    # One call after the other.

    def run(self):
        while True:
            message = self.lines.read()
            if message is None:
                return
            if message["type"] in ("open", "close"):
                self.answer(message, {})
            elif message["type"] == "call":
                self.call(message)

    def call(self, message):
        found = []
        token = unawaited.set(found)
        try:
            if message.get("scratch"):
                os.chdir(message["scratch"])
                tempfile.tempdir = message["scratch"]
            self.seed(message.get("seed", 0))
            value = self.finish(message, self.function(*self.arguments(message)), found)
        except BaseException as error:  # noqa: B902: also SystemExit
            self.answer(message, fault=fault_of(error, self.file))
        else:
            self.answer(message, value)
        finally:
            unawaited.reset(token)

    # Many calls in one event loop.

    async def run_async(self):
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def readable():
            if not self.lines.fill():
                loop.remove_reader(self.lines.source)
                ended.set_result(None)
            for message in self.lines.take():
                self.take(loop, message)

        for message in self.lines.take():  # what came together with the hello
            self.take(loop, message)
        loop.add_reader(self.lines.source, readable)
        await ended

    def take(self, loop, message):
        kind = message["type"]
        if kind in ("open", "close"):
            self.answer(message, {})
        elif kind == "call":
            generators = Generators(message.get("seed", 0), self.numpy)
            self.tasks[message["id"]] = loop.create_task(Steps(self.call_async(message), generators))
        elif kind == "cancel" and message["id"] in self.tasks:
            self.tasks[message["id"]].cancel()
        elif kind == "answer":
            future = self.questions.pop(message["id"], None)
            if future and not future.done():
                if "error" in message:
                    kind = LimitReached if message["error"].get("code") == "limit_reached" else PolicyError
                    future.set_exception(kind(message["error"]))
                else:
                    future.set_result(message.get("value") or {})

    async def call_async(self, message):
        found = []
        unawaited.set(found)
        try:
            value = self.finish(message, await self.function(*self.arguments(message)), found)
            fault = None
        except BaseException as error:  # noqa: B902: also SystemExit
            value, fault = None, fault_of(error, self.file)
        self.tasks.pop(message["id"], None)
        if not self.tasks:  # what the calls have left behind in the loop
            for task in asyncio.all_tasks() - {asyncio.current_task(), self.main}:
                task.cancel()
        self.answer(message, value, fault)

    async def ask(self, call, method, params):
        self.asked += 1
        question = self.asked
        future = self.questions[question] = asyncio.get_running_loop().create_future()
        self.lines.write({"type": "ask", "id": question, "call": call, "method": method, "params": params})
        return await future

    async def main_async(self):
        self.main = asyncio.current_task()
        asyncio.get_running_loop().set_task_factory(make_task)
        await self.run_async()


def main():
    lines = Lines()
    hello = lines.read()
    if hello is None or VERSION not in hello.get("versions", []):
        fault = Fault("import_error", "The program speaks version %d alone." % VERSION)
        lines.write({"type": "failed", "error": fault.error})
        return
    watch_coroutines()
    program = Program(lines)
    try:
        program.load(hello.get("config") or {})
    except Fault as fault:
        lines.write({"type": "failed", "error": fault.error})
        return
    ready = {"type": "ready", "version": VERSION, "cancels": program.is_async, "value": {"entry": program.entry}}
    if not program.is_async:
        ready["concurrency"] = 1
    lines.write(ready)
    if program.is_async:
        asyncio.run(program.main_async())
    else:
        program.run()


if __name__ == "__main__":
    main()
