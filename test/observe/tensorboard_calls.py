"""Writes an event file with the official package as the learner's test does, or prints the scalars that the package reads."""
import json
import sys

from tensorboard.backend.event_processing import event_multiplexer
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def write(path):
    with open(path, "wb") as file:
        writer = RecordWriter(file)
        writer.write(event_pb2.Event(wall_time=1000, file_version="brain.Event:2").SerializeToString())
        for step in range(3):
            values = {"env/all/reward/total": step / 4, "optim/lr": 0.0003}
            summary = summary_pb2.Summary(
                value=[summary_pb2.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
            )
            event = event_pb2.Event(wall_time=1000.25 + step, step=step, summary=summary)
            writer.write(event.SerializeToString())
        writer.flush()


def read(folder):
    runs = event_multiplexer.EventMultiplexer(size_guidance={"scalars": 0, "tensors": 0})
    runs.AddRunsFromDirectory(folder)
    runs.Reload()
    return {
        run: {tag: [[e.step, e.value] for e in runs.Scalars(run, tag)] for tag in tags["scalars"]}
        for run, tags in runs.Runs().items()
    }


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    print(json.dumps(read(sys.argv[2])))
