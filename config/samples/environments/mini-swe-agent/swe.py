# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""An episode of mini-swe-agent on a small repository: python3 -m swe.

TASK_FILE has the problem, the files of the repository and the module that the tests import. The agent works on the files in the
folder repository of the directory in which this program begins. At the end, the file repository.md has a block of code that
writes the files as the agent has left them, and imports the module: what reward.tests runs the tests of the row on, in another
container. The tests are not in the task.

Variables: ACTIONS is Tools for a model whose format has tools (the default), or Text. STEPS is the most replies (20).
"""

import json
import os
import pathlib

TOKEN = os.environ.pop("OPENAI_API_KEY")  # the policy's commands do not inherit it
os.environ.pop("ANTHROPIC_API_KEY", None)
# The agent reaches the gateway alone: no table of prices is fetched.
os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", MSWEA_SILENT_STARTUP="1", MSWEA_COST_TRACKING="ignore_errors")

import litellm  # noqa: E402
from minisweagent.agents.default import DefaultAgent  # noqa: E402
from minisweagent.environments.local import LocalEnvironment  # noqa: E402
from minisweagent.models.litellm_model import LitellmModel  # noqa: E402
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel  # noqa: E402

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
HOW = {
    "Tools": "Call the tool bash with one command in each reply.",
    "Text": "Write one command in each reply, in a block:\n\n```mswea_bash_command\nls\n```",
}
SYSTEM = "You repair programs in Python with a shell. Each command runs in a new shell, in the folder of the repository."
INSTANCE = """Solve this issue: {{task}}

{{how}}
Find the cause, change the files, and run the tests with python3 -m unittest. When you are done, submit with the command
%s, alone.""" % SUBMIT
OBSERVATION = """<returncode>{{output.returncode}}</returncode>
<output>
{% if output.exception_info %}{{output.exception_info}}
{% endif %}{% if output.output|length < 8000 %}{{output.output}}{% else %}{{output.output[:4000]}}
... {{output.output|length - 8000}} characters are left out ...
{{output.output[-4000:]}}{% endif %}</output>"""
FORMAT_ERROR = "{{error|default('There must be exactly one command.')}}\n\n" + "%s\nTo end, submit with: " + SUBMIT

MOST_BYTES = 200_000  # of a file that is scored
PROGRAM = """import pathlib
FILES = %s
for name, text in FILES.items():
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
import %s
"""


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def read(folder):
    """Returns the text files of a folder by their names, without links, hidden files and what Python compiles."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
        if hidden or path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
            continue
        try:
            files[name.as_posix()] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            pass
    return files


def scored(files, module):
    """Returns the block of code that is scored. No file can end the block."""
    literal = json.dumps(files, ensure_ascii=False, indent=0).replace("`", "\\u0060")
    return "```python\n" + PROGRAM % (literal, module) + "```\n"


def model(actions):
    # The gateway says by this error that a limit of the run is reached: no later request would be answered.
    kind = {"Tools": LitellmModel, "Text": LitellmTextbasedModel}[actions]
    kind.abort_exceptions = [*kind.abort_exceptions, litellm.exceptions.RateLimitError]
    return kind(
        model_name="openai/policy", observation_template=OBSERVATION, format_error_template=FORMAT_ERROR % HOW[actions],
        model_kwargs={"api_base": os.environ["OPENAI_BASE_URL"], "api_key": TOKEN, "drop_params": True})


def main():
    with open(os.environ["TASK_FILE"], encoding="utf-8") as file:
        task = json.load(file)
    start = pathlib.Path.cwd()
    repository = start / "repository"
    write(repository, task["files"])
    actions = os.environ.get("ACTIONS", "Tools")
    shell = LocalEnvironment(cwd=str(repository), timeout=30, env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""})
    agent = DefaultAgent(model(actions), shell, system_template=SYSTEM, instance_template=INSTANCE, cost_limit=0,
                         step_limit=int(os.environ.get("STEPS", "20")))
    end = agent.run(task["prompt"], how=HOW[actions])
    (start / "repository.md").write_text(scored(read(repository), task["module"]), encoding="utf-8")
    print(end["exit_status"], "after", agent.n_calls, "replies")


main()
