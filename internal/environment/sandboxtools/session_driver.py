# The program of a session in which a policy works: it keeps the variables of Python code, and runs commands of a shell,
# in the session's directory. It speaks the runner's protocol, and needs Python 3.9.
import ast
import io
import json
import os
import random
import subprocess
import sys
import traceback

LONGEST = 16384  # characters of a result


class Output(io.TextIOBase):
    """Keeps the begin and the end of what is written."""

    def __init__(self):
        self.head, self.tail, self.cut = "", "", False

    def writable(self):
        return True

    def write(self, text):
        room = LONGEST // 2 - len(self.head)
        self.head += text[:max(room, 0)]
        self.tail += text[max(room, 0):]
        if len(self.tail) > LONGEST // 2:
            self.tail, self.cut = self.tail[-(LONGEST // 2):], True
        return len(text)

    def text(self):
        return self.head + ("\n[...]\n" if self.cut else "") + self.tail


def run_python(space, code):
    output = Output()
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = output
    try:
        tree = ast.parse(code, "code")
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, "code", "exec"), space)
        if last is not None:
            value = eval(compile(last, "code", "eval"), space)
            if value is not None:
                print(repr(value))
    except SystemExit as stop:
        print("SystemExit:", stop.code)
    except BaseException as error:
        frames = error.__traceback__
        while frames and frames.tb_frame.f_code.co_filename == __file__:
            frames = frames.tb_next
        traceback.print_exception(type(error), error, frames)
    finally:
        sys.stdout, sys.stderr = before
    return output.text()


def run_shell(command):
    name = ".output"
    with open(name, "wb") as file:
        done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    output = Output()
    with open(name, encoding="utf-8", errors="replace") as file:
        while True:
            text = file.read(1 << 16)
            if not text:
                break
            output.write(text)
    os.unlink(name)
    text = output.text()
    if done.returncode != 0:
        text += ("" if not text or text.endswith("\n") else "\n") + "exit status %d\n" % done.returncode
    return text


def main():
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    space = {"__name__": "__main__", "__builtins__": __builtins__}

    def say(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    requests.readline()
    say({"type": "ready", "version": 1})
    for line in requests:
        request = json.loads(line)
        value = None
        try:
            if request["type"] == "open":
                random.seed(request.get("seed", 0))
                os.chdir(request["scratch"])
            elif request["type"] == "call":
                text = request["params"]["text"]
                value = run_python(space, text) if request["method"] == "python" else run_shell(text)
        except MemoryError:
            say({"type": "error", "id": request["id"], "error": {"code": "out_of_memory", "message": "There is no memory."}})
        except Exception as error:
            say({"type": "error", "id": request["id"], "error": {"code": "exception", "message": repr(error)}})
        else:
            say({"type": "result", "id": request["id"], "value": value})


main()
