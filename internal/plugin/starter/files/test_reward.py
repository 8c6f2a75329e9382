"""Tests of reward.py. In this folder: python3 -m unittest"""

import json
import types
import unittest

from reward import reward


def reply(text, truncated=False):
    message = {"role": "assistant", "content": text}
    return types.SimpleNamespace(text=text, truncated=truncated, tool_calls=[], messages=[message])


class TestReward(unittest.TestCase):
    row = {"question": "What is 2 + 3?", "answer": 5}

    def test_right_answer_earns_more(self):
        self.assertGreater(reward(self.row, reply("It is 5"))["reward"], reward(self.row, reply("It is 6"))["reward"])

    def test_replies_of_a_policy_raise_nothing(self):
        for text in ("", " ", "no number", "5" * 10000, "\ud83d", "5 or 6"):
            reward(self.row, reply(text, truncated=True))

    def test_answers_of_all_tasks_are_correct(self):
        with open("tasks.jsonl", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                self.assertTrue(reward(row, reply(str(row["answer"])))["correct"], row)


if __name__ == "__main__":
    unittest.main()
