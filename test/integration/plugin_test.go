// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/plugin"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// called is what a call of kubectl tinker came to.
type called struct {
	code           int
	stdout, stderr string
}

// tinker calls kubectl tinker in a namespace.
func tinker(namespace string, arguments ...string) called {
	return tinkerInput(namespace, "", arguments...)
}

// tinkerInput calls it with a standard input.
func tinkerInput(namespace, stdin string, arguments ...string) called {
	var stdout, stderr bytes.Buffer
	env := cli.Environment{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr, Now: time.Now}
	arguments = append([]string{"kubectl-tinker"}, append(arguments, "--kubeconfig", kubeconfig, "--namespace", namespace)...)
	code := plugin.Run(context.Background(), env, arguments)
	return called{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// succeeds calls it and returns what it printed.
func succeeds(namespace string, arguments ...string) string {
	GinkgoHelper()
	got := tinker(namespace, arguments...)
	Expect(got.code).To(BeZero(), "kubectl tinker %s: %s", strings.Join(arguments, " "), got.stderr)
	return got.stdout
}

var _ = Describe("kubectl tinker", func() {
	It("shows a run, its history and what it waits for", func() {
		w := newEnv()
		run, first := w.startedRun()
		for step := int64(1); step <= 3; step++ {
			w.learners.record(first.ip, stepRecord(step, "a"))
		}
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(3)})
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Progress).To(Equal("3/60")) })
		Eventually(func() []int64 { w.clock.advance(time.Second); return w.historySteps(run) }).Should(HaveLen(3))

		Expect(succeeds(w.namespace, "top", "--once")).To(SatisfyAll(ContainSubstring("arithmetic"), ContainSubstring("3/60"), ContainSubstring("0.7125")))
		Expect(succeeds(w.namespace, "top", "arithmetic", "--once")).To(SatisfyAll(ContainSubstring("reward: 3 at step 3"), ContainSubstring("checkpoint of step 3")))
		var rows []struct {
			Step    int64
			Metrics map[string]float64
		}
		Expect(json.Unmarshal([]byte(succeeds(w.namespace, "metrics", "arithmetic", "-o", "json")), &rows)).To(Succeed())
		Expect(rows).To(HaveLen(3))
		Expect(rows[2].Metrics).To(HaveKeyWithValue(contract.MetricReward, 3.0))
		Expect(succeeds(w.namespace, "metrics", "arithmetic", "--select", "reward", "--last", "1", "-o", "plain")).To(Equal("3\t3\n"))
		Expect(succeeds(w.namespace, "metrics", "arithmetic", "--plot", "reward")).To(ContainSubstring("steps 1 to 3"))
		Expect(succeeds(w.namespace, "why", "arithmetic")).To(ContainSubstring("Reason:   Training"))

		got := tinker(w.namespace, "metrics", "arithmetic", "--plot", "rewrd")
		Expect(got.code).To(Equal(cli.ExitUsage))
		Expect(got.stderr).To(ContainSubstring("did you mean reward?"))

		blocked := contract.HeartbeatReply{Attempt: 1, Upstream: "unreachable", UpstreamError: "POST /asample: connection refused", Progress: progress(3)}
		w.learners.answer(first.ip, blocked)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False " + v1alpha1.ReasonEndpointUnreachable))
		})
		Expect(succeeds(w.namespace, "why", "arithmetic")).To(SatisfyAll(
			ContainSubstring("Reason:   EndpointUnreachable"), ContainSubstring("connection refused"), ContainSubstring("Check tinker.baseURL")))
	})

	It("compares runs by spec and figures", func() {
		w := newEnv()
		w.environment()
		w.create()
		w.create(func(run *v1alpha1.TrainingRun) { run.Name, run.Spec.Model.LoraRank = "other", new(int32(16)) })
		Expect(succeeds(w.namespace, "compare", "arithmetic", "other")).To(SatisfyAll(ContainSubstring("ARITHMETIC   OTHER"), ContainSubstring("spec.model.loraRank")))
		got := tinker(w.namespace, "compare", "arithmetic")
		Expect(got.code).To(Equal(cli.ExitUsage))
		Expect(got.stderr).To(ContainSubstring("at least two runs"))
	})

	It("names the repair where a run does not exist", func() {
		w, other := emptyEnv(), emptyEnv()
		w.create()
		other.create(func(run *v1alpha1.TrainingRun) { run.Name = "elsewhere" })
		got := tinker(w.namespace, "why", "aritmetic")
		Expect(got.code).To(Equal(cli.ExitFailure))
		Expect(got.stderr).To(ContainSubstring("did you mean arithmetic?"))
		Expect(tinker(w.namespace, "top", "elsewhere").stderr).To(ContainSubstring("add --namespace " + other.namespace))
		third := emptyEnv()
		third.create(func(run *v1alpha1.TrainingRun) { run.Name = "elsewhere" })
		Expect(tinker(w.namespace, "logs", "elsewhere").stderr).To(SatisfyAll(ContainSubstring(other.namespace), ContainSubstring(third.namespace)))
		Expect(tinker(w.namespace, "logs", "arithmetic").stderr).To(ContainSubstring("no learner's pod"))
	})

	It("completes the names of runs", func() {
		w := emptyEnv()
		w.create()
		var stdout bytes.Buffer
		env := cli.Environment{Stdout: &stdout, Stderr: &bytes.Buffer{}, Now: time.Now}
		Expect(plugin.Run(context.Background(), env, []string{
			"kubectl_complete-tinker", fmt.Sprint("--kubeconfig=", kubeconfig), fmt.Sprint("--namespace=", w.namespace), "why", "",
		})).To(BeZero())
		Expect(stdout.String()).To(HavePrefix("arithmetic\n"))
	})
})
