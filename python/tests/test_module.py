# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the module with a real API server, which make test-python-module starts.

That creates the sweep "lr" beforehand, and plays the learner of the run that test_a_run creates.
"""

import builtins
import json
import os
import stat
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tinker_operator import Client, Error, NotFound, Refused, RunFailed, WaitTimeout

MANIFEST = Path(os.environ["TEST_MANIFEST"])
NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "sweep.ipynb"


class ModuleTest(unittest.TestCase):
    def setUp(self):
        self.client = Client()

    def assert_says(self, error, *texts):
        for text in texts:
            self.assertIn(text, str(error.exception))

    def test_a_run(self):
        run = self.client.create(MANIFEST, name="from-python")
        self.assertEqual((run.name, run.state, run.step), ("from-python", "", 0))
        optimizer = run.spec["algorithm"]["optimizer"]
        self.assertEqual(optimizer["learningRate"], 4e-5, "a number that PyYAML takes for a text")
        self.assertEqual(run.rows(), [])
        self.assertEqual(len(run.metrics()), 0)
        self.assertTrue(run.wait("Accepted", timeout=100).is_true("Accepted"))
        run.wait("Complete", timeout=100)
        self.assertEqual((run.state, run.step), ("Succeeded", 60))
        with self.assertRaises(RunFailed) as error:
            run.wait("Suspended", timeout=100)
        self.assert_says(error, "is complete")
        with self.assertRaises(Error) as error:
            run.suspend()
        self.assert_says(error, "nothing to suspend")

        metrics = run.metrics()
        self.assertEqual(list(metrics.index), [1, 2, 3])
        self.assertEqual(list(metrics["env/all/reward/total"]), [1.0, 2.0, 3.0])
        self.assertEqual(self.client.get("from-python").uid, run.uid)
        run.delete()
        again = self.client.create(MANIFEST, name="from-python")
        with self.assertRaises(NotFound) as error:
            run.refresh()
        self.assert_says(error, "another one has its name")
        again.delete()

    def test_a_failed_run_ends_a_wait(self):
        with self.assertRaises(RunFailed) as error:
            self.client.get("failed").wait(timeout=100)
        self.assert_says(error, "kubectl tinker retry failed", "no such model")

    def test_suspend_and_resume(self):
        run = self.client.get("waiting")
        with self.assertRaises(WaitTimeout) as error:
            run.wait("Complete", timeout=0.1)
        self.assert_says(error, "after 0.1 s", "RewardEnvironment", "kubectl tinker why waiting")
        self.assertTrue(run.suspend().wait("Suspended", timeout=100).spec["suspend"])
        self.assertFalse(run.resume().spec["suspend"])
        self.assertNotIn("rl.tinker-operator.dev/sweep-held", run.object["metadata"].get("annotations") or {})

    def test_histories_with_chunks(self):
        for run in self.client.runs(sweep="lr"):
            metrics = run.metrics()
            self.assertEqual(list(metrics.index), list(range(1, 401)))
            self.assertEqual(metrics["env/all/reward/total"][400], 400.0)
            evaluations = run.evaluations()
            self.assertEqual(list(evaluations.index), list(range(20, 401, 20)))
            self.assertEqual(list(evaluations.columns), ["test/pass@1"])

    def test_runs_of_a_sweep(self):
        runs = self.client.runs(sweep="lr")
        self.assertEqual([(run.name, run.values) for run in runs],
                         [("lr-2", {"learningRate": "1e-05"}), ("lr-10", {"learningRate": "0.0001"})])
        with self.assertRaises(NotFound) as error:
            self.client.runs(sweep="other")
        self.assert_says(error, "list sweeps with")

    def test_refusals(self):
        text = MANIFEST.read_text()
        with self.assertRaises(Refused) as error:
            self.client.create(text.replace("groupSize", "groupsize"), name="typo")
        self.assert_says(error, "typo", "groupsize")
        with self.assertRaises(Refused) as error:
            self.client.create(text, name="waiting")
        self.assert_says(error, "already exists", "name=")
        with self.assertRaises(NotFound) as error:
            self.client.get("waitin")
        self.assert_says(error, "did you mean 'waiting'")
        with self.assertRaises(Error) as error:
            self.client.create("absent.yaml")
        self.assert_says(error, "absent.yaml", "give the path")
        with self.assertRaises(Error) as error:
            self.client.create({"kind": "Secret"})
        self.assert_says(error, "has 0 objects of the kind TrainingRun")
        with self.assertRaises(Error) as error:
            Client(kubeconfig="/absent")
        self.assert_says(error, "Client(kubeconfig=...)")
        with self.assertRaises(Error) as error:
            Client(namespace="other").create(text.replace("name: arithmetic}", "name: a, namespace: third}"))
        self.assert_says(error, "namespace 'third'", "'other'")

    def test_dry_run_creates_nothing(self):
        self.client.create(MANIFEST, name="dry", dry_run=True)
        with self.assertRaises(NotFound):
            self.client.get("dry")

    def test_without_pandas(self):
        genuine = builtins.__import__

        def without(name, *arguments, **options):
            if name == "pandas":
                raise ImportError(name)
            return genuine(name, *arguments, **options)

        with mock.patch.object(builtins, "__import__", without), self.assertRaises(Error) as error:
            self.client.get("lr-2").metrics()
        self.assert_says(error, "pip install pandas")

    def test_transcripts(self):
        run = self.client.get("waiting")
        with self.assertRaises(Error) as error:  # By the real plugin.
            run.transcripts()
        self.assert_says(error, "keeps no transcripts: set spec.artifacts")
        with tempfile.TemporaryDirectory() as folder:
            plugin = Path(folder, "kubectl-tinker")
            plugin.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps({{'step': 3, 'groups': [], "
                              "'arguments': sys.argv[1:]}))\n")
            plugin.chmod(stat.S_IRWXU)
            with mock.patch.dict(os.environ, PATH=folder):
                found = run.transcripts(3, evaluation=True, failed=True)
        self.assertEqual(found["arguments"], ["transcripts", "waiting", "-o", "json", "--namespace",
                                              self.client.namespace, "--step=3", "--eval", "--failed"])
        with mock.patch.dict(os.environ, PATH="/absent"), self.assertRaises(Error) as error:
            run.transcripts()
        self.assert_says(error, "not in PATH")

    def test_notebook(self):
        names = {}
        for cell in json.loads(NOTEBOOK.read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
        self.assertEqual([len(axes.lines) for axes in (names["left"], names["right"])], [2, 1])
        self.assertEqual(list(names["left"].lines[0].get_xdata()), list(range(20, 401, 20)))
        self.assertEqual(list(names["right"].lines[0].get_xdata()), [1e-5, 1e-4])


if __name__ == "__main__":
    unittest.main(verbosity=2)
