// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build python

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
)

var _ = Describe("The Python module", func() {
	It("creates, waits for and reads runs, and plots a sweep", func() {
		folder := GinkgoT().TempDir()
		built := exec.Command("go", "build", "-o", folder, "../../cmd/kubectl-tinker")
		Expect(built.CombinedOutput()).To(BeEmpty())
		out, err := exec.Command("../conformance/venv", "python-client").Output()
		Expect(err).NotTo(HaveOccurred())
		bin := filepath.Join(strings.TrimSpace(string(out)), "bin")
		python := func(arguments ...string) *exec.Cmd {
			command := exec.Command(filepath.Join(bin, "python"), arguments...)
			command.Dir = filepath.Join("..", "..", "python")
			return command
		}
		checked, err := python("-m", "mypy", "--cache-dir", filepath.Join(folder, "mypy")).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(checked))

		w := newEnv()
		w.environment()
		w.sweepWithHistories()
		w.create(func(run *v1alpha1.TrainingRun) {
			run.Name, run.Spec.Environments[0].Name = "waiting", "absent"
			run.Annotations = map[string]string{"rl.tinker-operator.dev/sweep-held": "true"}
		})
		failed := w.create(func(run *v1alpha1.TrainingRun) { run.Name = "failed" })
		w.attempt(failed, 1, progress(0))
		w.verdict(w.learner("failed", 1), contract.Verdict{Cause: contract.CauseConfigRejected, Attempt: 1,
			Message: "no such model", Progress: progress(0)})

		manifest := filepath.Join(folder, "run.yaml")
		Expect(os.WriteFile(manifest, []byte(strings.Replace(smallestRun, "3.0e-4", "4e-5", 1)+"---"+smallestEnvironment),
			0o600)).To(Succeed())
		tests := python("-B", "tests/test_module.py")
		tests.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfigOfNamespace(folder), "TEST_MANIFEST="+manifest,
			"PYTHONPATH=.", "MPLBACKEND=Agg", "MPLCONFIGDIR="+folder, "PATH="+folder+":"+os.Getenv("PATH"))
		var said strings.Builder
		tests.Stdout, tests.Stderr = &said, &said
		Expect(tests.Start()).To(Succeed())
		done := make(chan error, 1)
		go func() { done <- tests.Wait() }()
		DeferCleanup(func() { _ = tests.Process.Kill() })

		w.playFromPython(done)
		Eventually(func() error {
			w.clock.advance(time.Second)
			select {
			case err := <-done:
				done <- err
				return nil
			default:
				return fmt.Errorf("the tests run")
			}
		}).Should(Succeed())
		Expect(<-done).To(Succeed(), said.String())
		GinkgoWriter.Println(said.String())
	})
})

// playFromPython plays the learner of the run that the tests create, unless they end before.
func (w *env) playFromPython(done chan error) {
	GinkgoHelper()
	run := &v1alpha1.TrainingRun{}
	created := false
	Eventually(func() bool {
		created = kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "from-python"}, run) == nil
		return created || len(done) > 0
	}).Should(BeTrue())
	if !created {
		return
	}
	first := w.attempt(run, 1, progress(0))
	for step := int64(1); step <= 3; step++ {
		w.learners.record(first.ip, stepRecord(step, "a"))
	}
	w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(3)})
	Eventually(func() []int64 { w.clock.advance(time.Second); return w.historySteps(run) }).Should(HaveLen(3))
	w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1, Progress: progress(60)})
}

// sweepWithHistories creates two runs of a sweep whose histories have chunks.
func (w *env) sweepWithHistories() {
	GinkgoHelper()
	for number, rate := range map[int]string{2: "1e-05", 10: "0.0001"} {
		run := w.create(func(run *v1alpha1.TrainingRun) {
			run.Name, run.Spec.Suspend = fmt.Sprintf("lr-%d", number), new(true)
			run.Labels = map[string]string{"rl.tinker-operator.dev/sweep": "lr",
				"sweep.rl.tinker-operator.dev/learningRate": rate}
		})
		h := &history.History{Stride: 1}
		for step := int64(1); step <= 400; step++ {
			row := history.Row{Step: step, Lineage: "a", Attempt: 1, Time: 1000 + step,
				Metrics: map[string]float64{contract.MetricReward: float64(step), "loss:sum": 1 / float64(step)}}
			if step%20 == 0 {
				row.Metrics[contract.MetricPassAt1] = float64(step) / 1000
			}
			h.Rows = append(h.Rows, row)
		}
		parts, err := h.Encode()
		Expect(err).NotTo(HaveOccurred())
		Expect(parts.Chunks).NotTo(BeEmpty())
		Expect(historymap.Write(context.Background(), kube, run, nil, nil, parts)).To(Succeed())
	}
}

// kubeconfigOfNamespace writes a kubeconfig whose context names the namespace, and returns its path.
func (w *env) kubeconfigOfNamespace(folder string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.Contexts[config.CurrentContext].Namespace = w.namespace
	file := filepath.Join(folder, "config")
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	return file
}
