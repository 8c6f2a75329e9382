"""oracle.py FOLDER: grades programs with the grader of tinker-cookbook, whose package is in FOLDER.

Reads JSON lines with reply and tests, and writes a line for each: whether the grader passes the reply.
"""
import ast
import concurrent.futures
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

TIMEOUT = 1
RECIPE = os.path.join(sys.argv[1], "tinker_cookbook", "recipes", "code_rl")


def load_grader():
    path = os.path.join(RECIPE, "lcb_utils.py")
    spec = importlib.util.spec_from_file_location("lcb_utils", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_functions(*names):
    """The functions of code_grading.py that need none of its sandboxes."""
    with open(os.path.join(RECIPE, "code_grading.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    tree.body = [node for node in tree.body if getattr(node, "name", "") in names]
    space = {"re": re, "json": json, "Any": object}
    exec(compile(tree, "code_grading.py", "exec", flags=__import__("__future__").annotations.compiler_flag), space)
    return [space[name] for name in names]


GRADER = load_grader()
EXTRACT, CONVERT = load_functions("extract_code_from_model", "postprocess_lcb_sample")


def grade(line):
    case = json.loads(line)
    code = EXTRACT(case["reply"])
    if code is None:
        return False
    sample = CONVERT(case["tests"])
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {
            "test_cases.txt": json.dumps(sample), "code.py": code, "testing_util.py": GRADER.TEST_UTIL,
            "run.py": GRADER.TEST_CODE % {"timeout": TIMEOUT},
        }.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        try:
            done = subprocess.run([sys.executable, "run.py"], cwd=folder, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=(TIMEOUT + 1) * len(case["tests"]) + 5)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for passed in pool.map(grade, list(sys.stdin)):
        print(json.dumps(passed), flush=True)
