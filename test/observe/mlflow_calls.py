"""Logs the steps of a run with the official package, in two attempts, as the learner's test does; or prints what a server has."""
import json
import os
import sys

address = sys.argv[2]
os.environ.update(MLFLOW_TRACKING_URI=address, MLFLOW_TRACKING_TOKEN="k" * 40, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0", GIT_PYTHON_REFRESH="quiet")
import mlflow  # noqa: E402 (it reads the environment when it is imported)

UID = "0b1c2d3e-0000-4000-8000-000000000001"
TAGS = {"tinker-operator.uid": UID, "tinker-operator.namespace": "team", "tinker-operator.name": "run", "night": "yes"}
PARAMS = {"algorithm.optimizer.learningRate": 0.0003, "algorithm.steps": 6, "environments.a.groupSize": 8, "environments.a.name": "a", "model.name": "m"}


def attempt(first, last):
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("arithmetic")
    identity = experiment.experiment_id if experiment else client.create_experiment("arithmetic")
    runs = client.search_runs([identity], f"tags.`tinker-operator.uid` = '{UID}'")
    if runs:
        run = runs[0].info.run_id
        client.update_run(run, status="RUNNING", name="fast")
    else:
        run = client.create_run(identity, run_name="fast", tags=TAGS).info.run_id
        client.log_batch(run, params=[mlflow.entities.Param(k, str(v)) for k, v in PARAMS.items()])
    for step in range(first, last):
        client.log_batch(run, metrics=[
            mlflow.entities.Metric("env/all/reward/total", step / 4, (1000 + step) * 1000, step),
            mlflow.entities.Metric("optim/lr", 0.0003, (1000 + step) * 1000, step),
        ])
    client.set_terminated(run, "FINISHED")


def read():
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name(sys.argv[3]).experiment_id
    found = []
    for run in client.search_runs([experiment]):
        history = {k: [[m.step, m.value] for m in client.get_metric_history(run.info.run_id, k)] for k in run.data.metrics}
        found.append({
            "name": run.info.run_name, "status": run.info.status, "params": run.data.params, "metrics": history,
            "tags": {k: v for k, v in run.data.tags.items() if not k.startswith("mlflow.")},
        })
    return found


if sys.argv[1] == "write":
    attempt(0, 3)
    attempt(3, 5)
else:
    print(json.dumps(read()))
