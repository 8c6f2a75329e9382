"""Uploads two rollouts with the official package, as the learner's test does."""
import os
import sys

address = sys.argv[1]
os.environ.update(OPENREWARD_API_KEY="k" * 40, OPENREWARD_API_URL=address, OPENREWARD_SESSION_URL=address)
import openreward  # noqa: E402 (it reads the environment when it is imported)
from openreward.api.rollouts.serializers.base import (  # noqa: E402
    AssistantMessage, ReasoningItem, SystemMessage, ToolCall, ToolResult, UserMessage,
)

client = openreward.OpenReward()
rollout = client.rollout.create(
    run_name="fast", rollout_name="whodunit-train-7-step2-r0", environment="GeneralReasoning/WhoDunIt", variant="hard", split="train",
    metadata={"step": 2, "rollout_idx": 0, "stop": "finished", "outcome": "Usable", "reward": 1.0,
              "num_tool_calls": 1.0, "num_failed_tool_calls": 0.0, "called_answer": 1.0},
)
rollout.log(SystemMessage(content="Call tools."))
rollout.log(UserMessage(content="Who was it?"))
rollout.log(ReasoningItem(content="hm"))
rollout.log(AssistantMessage(content="I know."))
rollout.log(ToolCall(name="answer", content='{"name": "the gardener"}', call_id="0123456789"))
rollout.log(ToolResult(content="Corr\0ect!", call_id="0123456789"), reward=1.0, is_finished=True)
rollout = client.rollout.create(
    run_name="fast", rollout_name="sums-train-3-step2-r1", environment="sums", split="train",
    metadata={"step": 2, "rollout_idx": 1, "stop": "stop", "outcome": "Usable", "reward": 0.0},
)
rollout.log(UserMessage(content="1+1"))
rollout.log(AssistantMessage(content="3"), reward=0.0, is_finished=True)
client.rollout.close()
print(openreward.__version__ if hasattr(openreward, "__version__") else "")
