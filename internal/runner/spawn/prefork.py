# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0

"""Imports once what a command in Python imports, and forks for each call. docs/runner.md describes the rules.

It runs as python -c TEXT CONFIG. At file descriptor 3 it says what it has imported, and then receives the files of each
call: standard input, output and error, and a pipe with the directory and the environment. The forks read the pipe, so
that this process never has the token of an episode.
"""

import ast
import ctypes
import gc
import importlib
import importlib.util
import io
import json
import os
import runpy
import site
import socket
import sys
import sysconfig
import types

CONTROL = 3
PR_SET_DUMPABLE = 4


class Reads(os._Environ):
    """The environment, which notes the names that are read."""

    names = set()

    def __getitem__(self, name):
        Reads.names.add(name)
        return super().__getitem__(name)

    def __iter__(self):
        Reads.names.add("*")
        return super().__iter__()


class Unfit(Exception):
    """Why nothing can be imported before a call."""


def imports(tree, package):
    """Yields the modules that a program imports at its top."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            if node.level and package:
                yield importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            elif not node.level:
                yield node.module


def find(config):
    """Returns the program's file and package, and becomes the program in what its imports see of it."""
    main = types.ModuleType("__main__")
    if config.get("code"):  # whose sys.path is that of this process, which is a python -c as well
        sys.argv = ["-c"] + config["arguments"]
        sys.modules["__main__"] = main
        main.__dict__.update(__builtins__=__builtins__)
        return "<string>", None
    if not getattr(sys.flags, "safe_path", False):
        sys.path.pop(0)  # the '' of python -c
    sys.argv = [config.get("script") or "-m"] + config["arguments"]
    sys.modules["__main__"] = main
    if config.get("script"):
        name = config["script"]
        main.__dict__.update(__file__=name, __cached__=None, __builtins__=__builtins__,
                             __loader__=importlib.machinery.SourceFileLoader("__main__", name))
        if not getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, os.path.dirname(os.path.realpath(name)))
        return name, None
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.getcwd())
    main.__dict__.update(__builtins__=__builtins__)
    name = config["module"]
    spec = importlib.util.find_spec(name)
    if spec and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(name + ".__main__")
    if not spec or not spec.origin or not spec.origin.endswith(".py"):
        raise Unfit("the module %s has no source" % name)
    return spec.origin, spec.parent


def source(config, name):
    """Returns the text of the program."""
    if config.get("code"):
        return config["code"]
    with io.open_code(name) as file:
        return file.read()


def state():
    """Returns what an import must not change."""
    files = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            files.add((name, os.readlink("/proc/self/fd/" + name)))
        except OSError:
            pass  # the one that has listed them
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        children = True
    except ChildProcessError:
        children = False
    return {"starts a thread": len(os.listdir("/proc/self/task")), "starts a process": children, "opens a file": files,
            "changes the environment": dict(os.environ._data), "leaves its directory": os.readlink("/proc/self/cwd"),
            "writes to its directory": sorted(os.listdir("."))}


def printed(pipe):
    """Reports whether something was printed."""
    sys.stdout.flush()
    try:
        return bool(os.read(pipe, 1 << 16))
    except BlockingIOError:
        return False


def load(name, variables, pipe):
    """Imports a module. It returns why no fork may have it, or an empty text."""
    before = state()
    Reads.names.clear()
    try:
        importlib.import_module(name)
    except BaseException as e:  # also SystemExit; the fork has the error again, as its own
        return "%s: %s" % (type(e).__name__, e)
    for why, value in state().items():
        if value != before[why]:
            return why
    read = sorted(Reads.names & variables)
    if read:
        return "reads " + " ".join(read)
    return "prints" if printed(pipe) else ""


def prepare(config):
    """Imports what the program imports. It returns what was imported, and what was not and why."""
    if sys.version_info < (3, 9):
        raise Unfit("it needs Python 3.9")
    sysconfig.get_config_vars(), site.getuserbase()  # they read HOME, and packages ask them
    output, (pipe, end) = os.dup(1), os.pipe()
    os.set_blocking(pipe, False)
    os.dup2(end, 1)
    os.close(end)
    getcwd, os.environ.__class__ = os.getcwd, Reads

    def noted():
        Reads.names.add("PWD")
        return getcwd()

    variables = set(config["variables"]) | {"*", "HOME", "TMPDIR", "PWD"}
    name, package = find(config)
    tree = ast.parse(source(config, name))
    if Reads.names & variables or printed(pipe):
        raise Unfit("its package depends on the episode")
    os.getcwd = noted
    loaded, left = [], {}
    for module in dict.fromkeys(imports(tree, package)):
        if module not in config["exclude"]:
            why = load(module, variables, pipe)
            left.update({module: why[:200]} if why else {})
            loaded.extend([] if why else [module])
    os.getcwd, os.environ.__class__ = getcwd, os._Environ
    os.dup2(output, 1)
    os.close(output)
    os.close(pipe)
    return {"modules": loaded, "left": left}


def protect(dumpable):
    """Keeps the memory and the files of this process from others of its user, or gives them back."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "protecting the process")


def wait_for_calls(control):
    """Forks for each call, and says how its fork has ended. It returns in the fork, with the files of the call."""
    while True:
        data, files, _, _ = socket.recv_fds(control, 16, 4)
        if not data:
            os._exit(0)
        child = os.fork()
        if child == 0:
            return files
        for file in files:
            os.close(file)
        status = os.waitpid(child, 0)[1]
        control.send(b"%d" % (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1))


def become(files, config):
    """Gives a fork what a process of its own would have."""
    protect(1)
    for target, file in enumerate(files[:3]):
        os.dup2(file, target)
        os.close(file)
    with open(files[3], "rb") as pipe:
        call = json.load(pipe)
    os.chdir(call["dir"])
    if "LC_CTYPE" in os.environ:  # the interpreter has set it as it started
        call["env"].setdefault("LC_CTYPE", os.environ["LC_CTYPE"])
    os.environ.clear()
    os.environ.update(call["env"])
    if config.get("module") and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # the module random does this by itself
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = config["command"]


def run(config):
    """Runs the program."""
    if config.get("module"):
        runpy._run_module_as_main(config["module"])
        return
    name = config.get("script") or "<string>"
    code = compile(source(config, name), name, "exec", dont_inherit=True)
    exec(code, sys.modules["__main__"].__dict__)


def begin():
    """Is this process until a call, and then the fork of a call."""
    config, control = json.loads(sys.argv[1]), socket.socket(fileno=CONTROL)
    try:
        said = prepare(config)
        if said["modules"] and not said["left"]:
            protect(0)
    except BaseException as e:
        said = {"failed": "%s: %s" % (type(e).__name__, e)}
    control.send(json.dumps(said).encode()[:1 << 16])
    if said.get("failed") or said["left"] or not said["modules"]:
        os._exit(0)
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    gc.freeze()  # a collection would write to all pages that forks share
    files = wait_for_calls(control)
    control.close()
    become(files, config)
    try:
        run(config)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as e:
        trace = e.__traceback__
        while trace and trace.tb_frame.f_globals is globals():
            trace = trace.tb_next
        sys.excepthook(type(e), e.with_traceback(trace), trace)
        sys.exit(1)


if __name__ == "__main__":
    begin()
