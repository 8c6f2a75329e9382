# Runs the program of a reply: as a script, or for the value of one call. It is written anew beside program.py for each
# test, and needs Python 3.9. A value is JSON in which each object names its kind: f a float, l a list, t a tuple, s a
# set, d a dict, b bytes, o anything else.
import json
import os
import sys

# What programs of the public data sets may use without importing it, in the order in which later names replace earlier
# ones.
STARRED = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json "
    "builtins typing"
).split()
IMPORTED = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json"
).split()
RECURSION = 600000


def load(name):
    space = {"__name__": name}
    lines = ["from %s import *" % module for module in STARRED] + ["import %s" % module for module in IMPORTED]
    exec("\n".join(lines), space)
    with open("program.py", encoding="utf-8") as file:
        text = file.read()
    code = compile(text, "program.py", "exec")
    sys.setrecursionlimit(RECURSION)
    imported = dict(space)
    exec(code, space)
    return space, imported


def encode(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return {"f": repr(float(value))}
    for name, kind in (("l", list), ("t", tuple)):
        if isinstance(value, kind):
            return {name: [encode(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"s": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"d": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, (bytes, bytearray)):
        return {"b": bytes(value).hex()}
    return {"o": type(value).__name__}


def call(request):
    space, imported = load("program")
    if "expression" in request:
        return eval(compile(request["expression"], "test", "eval"), space)
    owner = space.get("Solution")
    name = request["function"]
    if isinstance(owner, type):
        function = getattr(owner(), name)
    elif name in space and space[name] is not imported.get(name):
        function = space[name]
    else:
        raise NameError("the program does not define %s" % name)
    arguments = [json.loads(text) for text in request["arguments"]]
    if arguments and isinstance(arguments[0], dict):  # JSON has texts as keys alone
        try:
            arguments = [{int(key): item for key, item in arguments[0].items()}]
        except ValueError:
            pass
    return function(*arguments)


def main():
    # Digits of integers are bounded since Python 3.11.
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    if sys.argv[1:] == ["script"]:
        try:
            load("__main__")
        except SystemExit:
            pass
        sys.stdout.flush()
        return
    result = os.dup(1)
    os.dup2(2, 1)
    request = json.loads(sys.stdin.read())
    value = json.dumps(encode(call(request)))
    sys.stdout.flush()
    with os.fdopen(result, "w") as out:
        out.write(value)


main()
