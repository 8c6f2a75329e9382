"""Logs the steps of a run with the official package, in two attempts, as the learner's test does."""
import os
import sys
import tempfile

address = sys.argv[1]
folder = tempfile.mkdtemp()
os.chdir(folder)
os.environ.update(
    WANDB_BASE_URL=address, WANDB_API_KEY="k" * 40, WANDB_SILENT="true", WANDB_DIR=folder,
    WANDB_DISABLE_GIT="true", WANDB_DISABLE_CODE="true",
)
import wandb  # noqa: E402 (it reads the environment when it is imported)


def attempt(first, last):
    run = wandb.init(
        project="arithmetic", id="0b1c2d3e-0000-4000-8000-000000000001", name="fast",
        config={"algorithm": {"steps": 6, "optimizer": {"learningRate": 0.0003}}, "model": {"name": "m"}},
        tags=["night", "sweep"], resume="allow",
        settings=wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off", x_save_requirements=False),
    )
    for step in range(first, last):
        run.log({"env/all/reward/total": step / 4, "optim/lr": 0.0003}, step=step)
    run.finish()


attempt(0, 3)
attempt(3, 5)
print(wandb.__version__)
