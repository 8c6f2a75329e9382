"""What a reply earns. Say it by code: kubectl tinker try and the workers of a run call reward for each reply.

row is a dict with the columns of the task in tasks.jsonl. reply has text, truncated, tool_calls and messages. The result is a number, a
bool, or a dict with reward, correct and metrics of your own. An exception is a fault of the reply, which is left out and counted.
"""

import re


def reward(row, reply):
    numbers = re.findall(r"-?\d+", reply.text)
    correct = bool(numbers) and numbers[-1] == str(row["answer"])
    # The last number counts for the answer, and a short reply a little.
    return {"reward": correct + 0.1 * (len(reply.text) < 40), "correct": correct, "length": len(reply.text)}
