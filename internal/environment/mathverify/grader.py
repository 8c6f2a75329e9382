# Compares a reply with an answer by the package math-verify. It speaks the runner's protocol.
import json
import os
import sys

from math_verify import parse, verify


def read_answer(answer):
    if "\\boxed" not in answer and "$" not in answer:
        answer = "\\boxed{" + answer + "}"
    return parse(answer)


def grade(params):
    gold = read_answer(params["answer"])
    if not gold:
        return {"unreadable": True}
    target = parse(params["text"])
    return {"found": bool(target), "correct": bool(target) and bool(verify(gold, target))}


def main():
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    requests.readline()
    answers.write(json.dumps({"type": "ready", "version": 1}) + "\n")
    answers.flush()
    for line in requests:
        request = json.loads(line)
        answer = {"type": "result", "id": request["id"]}
        if request["type"] == "call":
            try:
                answer["value"] = grade(request["params"])
            except Exception as error:
                answer = {"type": "error", "id": request["id"],
                          "error": {"code": "exception", "message": type(error).__name__ + ": " + str(error)}}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
