// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/plugin"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// called is the result of a call of kubectl tinker.
type called struct {
	code           int
	stdout, stderr string
}

// tinker calls kubectl tinker in a namespace.
func tinker(namespace string, arguments ...string) called {
	return tinkerInput(namespace, "", arguments...)
}

// tinkerInput calls kubectl tinker in a namespace with a standard input.
func tinkerInput(namespace, stdin string, arguments ...string) called {
	var stdout, stderr bytes.Buffer
	env := cli.IO{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(stdin), Stdout: &stdout,
		Stderr: &stderr, Now: time.Now}
	arguments = append([]string{"kubectl-tinker"}, append(arguments, "--kubeconfig", kubeconfig, "--namespace",
		namespace)...)
	code := plugin.Run(context.Background(), env, arguments)
	return called{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// succeeds runs kubectl tinker, expects exit code 0, and returns the standard output.
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
		w.eventually(run, func(g Gomega) { g.Expect(status.Steps(&run.Status)).To(Equal("3/60")) })
		Eventually(func() []int64 { w.clock.advance(time.Second); return w.historySteps(run) }).Should(HaveLen(3))

		Expect(succeeds(w.namespace, "top", "--once")).To(SatisfyAll(ContainSubstring("arithmetic"), ContainSubstring("3/60"),
			ContainSubstring("0.7125")))
		Expect(succeeds(w.namespace, "top", "arithmetic", "--once")).To(SatisfyAll(ContainSubstring("reward: 3 at step 3"),
			ContainSubstring("checkpoint of step 3")))
		var rows []struct {
			Step    int64
			Metrics map[string]float64
		}
		Expect(json.Unmarshal([]byte(succeeds(w.namespace, "metrics", "arithmetic", "-o", "json")), &rows)).To(Succeed())
		Expect(rows).To(HaveLen(3))
		Expect(rows[2].Metrics).To(HaveKeyWithValue(contract.MetricReward, 3.0))
		Expect(succeeds(w.namespace, "metrics", "arithmetic", "--select", "reward", "--last", "1", "-o",
			"plain")).To(Equal("STEP\tREWARD\n3\t3\n"))
		Expect(succeeds(w.namespace, "metrics", "arithmetic", "--plot", "reward")).To(ContainSubstring("steps 1 to 3"))
		Expect(succeeds(w.namespace, "why", "arithmetic")).To(ContainSubstring("Reason:   Progressing"))

		got := tinker(w.namespace, "metrics", "arithmetic", "--plot", "rewrd")
		Expect(got.code).To(Equal(cli.ExitUsage))
		Expect(got.stderr).To(ContainSubstring("did you mean reward?"))

		blocked := contract.HeartbeatReply{Attempt: 1,
			Problems: []problem.Problem{{Code: "EndpointUnreachable", Evidence: "POST /asample: connection refused"}},
			Progress: progress(3)}
		w.learners.answer(first.ip, blocked)
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("False " + v1alpha1.ReasonEndpointUnreachable))
		})
		Expect(succeeds(w.namespace, "why", "arithmetic")).To(SatisfyAll(
			ContainSubstring("Reason:   EndpointUnreachable"), ContainSubstring("connection refused"),
			ContainSubstring("Check tinker.baseURL")))
	})

	It("compares runs by spec and figures", func() {
		w := newEnv()
		w.environment()
		w.create()
		w.create(func(run *v1alpha1.TrainingRun) { run.Name, run.Spec.Model.LoraRank = "other", new(int32(16)) })
		Expect(succeeds(w.namespace, "compare", "arithmetic", "other")).To(SatisfyAll(ContainSubstring("ARITHMETIC   OTHER"),
			ContainSubstring("spec.model.loraRank")))
		got := tinker(w.namespace, "compare", "arithmetic")
		Expect(got.code).To(Equal(cli.ExitUsage))
		Expect(got.stderr).To(ContainSubstring("at least two runs"))
	})

	It("creates runs with changed fields, or a sweep, or nothing", func() {
		w := emptyEnv()
		file := filepath.Join("..", "..", "config", "samples", "arithmetic.yaml")
		succeeds(w.namespace, "create", "-f", file, "--name", "fast", "--set", "spec.algorithm.optimizer.learningRate=2.0e-5",
			"--set", "spec.environments[arithmetic].groupSize=4")
		run := &v1alpha1.TrainingRun{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "fast"}, run)).To(Succeed())
		Expect(run.Spec.Algorithm.Optimizer.LearningRate).To(Equal(2e-5))
		Expect(run.Spec.Environments[0].GroupSize).To(BeEquivalentTo(4))
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "arithmetic"},
			&v1alpha1.RewardEnvironment{})).To(Succeed())

		Expect(succeeds(w.namespace, "create", "-f", file, "--sweep", "lr", "--grid",
			"spec.algorithm.optimizer.learningRate=1.0e-5,2.0e-5")).To(Equal(
			"rewardenvironment arithmetic exists and is left as it is\ntrainingrun arithmetic-1 created\ntrainingrun " +
				"arithmetic-2 created\n"))
		Expect(succeeds(w.namespace, "compare", "--sweep", "lr")).To(SatisfyAll(
			ContainSubstring("ARITHMETIC-1"), ContainSubstring("ARITHMETIC-2"),
			ContainSubstring("spec.algorithm.optimizer.learningRate   1e-05")))
		var ofRate v1alpha1.TrainingRunList
		Expect(kube.List(context.Background(), &ofRate, client.InNamespace(w.namespace),
			client.MatchingLabels{"sweep.rl.tinker-operator.dev/learningRate": "2.0e-5"})).To(Succeed())
		Expect(ofRate.Items).To(HaveLen(1))
		Expect(ofRate.Items[0].Name).To(Equal("arithmetic-2"))

		held, cancel := context.WithCancel(context.Background())
		var sweeping strings.Builder
		done := make(chan int)
		go func() {
			done <- plugin.Run(held, cli.IO{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""),
				Stdout: &sweeping, Stderr: &sweeping, Now: time.Now}, []string{"kubectl-tinker", "create", "-f", file, "--name",
				"held", "--grid", "spec.algorithm.seed=1,2", "--max-running", "1", "--kubeconfig", kubeconfig, "--namespace",
				w.namespace})
		}()
		second := client.ObjectKey{Namespace: w.namespace, Name: "held-2"}
		Eventually(func() error { return kube.Get(context.Background(), second, run) }).Should(Succeed())
		Expect(*run.Spec.Suspend).To(BeTrue())
		cancel()
		Expect(<-done).To(Equal(cli.ExitFailure))
		Expect(sweeping.String()).To(ContainSubstring("kubectl tinker resume --sweep held --max-running 1 continues"))
		Expect(succeeds(w.namespace, "resume", "--sweep", "held", "--max-running", "2")).To(ContainSubstring("held-2 runs"))
		Expect(kube.Get(context.Background(), second, run)).To(Succeed())
		Expect(*run.Spec.Suspend).To(BeFalse())

		for _, tc := range []struct {
			arguments []string
			code      int
			want      string
		}{
			{[]string{"--name", "x", "--set", "spec.algorithm.optimizer.learningrate=1"}, cli.ExitUsage,
				"did you mean spec.algorithm.optimizer.learningRate?"},
			{[]string{"--name", "x", "--grid", "spec.algorithm.substeps=1,-1"}, cli.ExitFailure, "spec.algorithm.substeps"},
			{[]string{"--name", "fast"}, cli.ExitFailure, "exists already: choose another name with --name"},
		} {
			got := tinker(w.namespace, append([]string{"create", "-f", file}, tc.arguments...)...)
			Expect(got.code).To(Equal(tc.code), got.stderr)
			Expect(got.stderr).To(ContainSubstring(tc.want))
		}
		unknown := "apiVersion: rl.tinker-operator.dev/v1alpha1\nkind: TrainingRun\nmetadata: {name: x}\nspec: {modell: {}}\n"
		Expect(tinkerInput(w.namespace, unknown, "create", "-f",
			"-").stderr).To(And(ContainSubstring(`unknown field "spec.modell"`),
			ContainSubstring("did you mean spec.model?")))
		var runs v1alpha1.TrainingRunList
		Expect(kube.List(context.Background(), &runs, client.InNamespace(w.namespace))).To(Succeed())
		Expect(runs.Items).To(HaveLen(5), "of a grid with one invalid run none is created")
	})

	It("continues a search where it was interrupted", func() {
		w := emptyEnv()
		arguments := []string{"create", "-f", filepath.Join("..", "..", "config", "samples", "arithmetic.yaml"), "--name",
			"searched", "--search", "halving", "--samples", "3", "--max-running", "2", "--rungs", "20", "--grid",
			"spec.algorithm.optimizer.learningRate=loguniform(1e-6,1e-4)", "--kubeconfig", kubeconfig, "--namespace",
			w.namespace}
		run := &v1alpha1.TrainingRun{}
		get := func(name string) *v1alpha1.TrainingRun {
			*run = v1alpha1.TrainingRun{}
			Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, run)).To(Succeed())
			return run
		}
		search := func(until func() bool) string {
			ctx, cancel := context.WithCancel(context.Background())
			var said strings.Builder
			done := make(chan int)
			go func() {
				done <- plugin.Run(ctx, cli.IO{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""),
					Stdout: &said, Stderr: &said, Now: time.Now}, append([]string{"kubectl-tinker"}, arguments...))
			}()
			Eventually(until).Should(BeTrue())
			cancel()
			Expect(<-done).To(Equal(cli.ExitFailure))
			return said.String()
		}
		Expect(search(func() bool {
			second := client.ObjectKey{Namespace: w.namespace, Name: "searched-2"}
			return kube.Get(context.Background(), second, run) == nil && !*run.Spec.Suspend
		})).To(SatisfyAll(ContainSubstring("trainingrun searched-3 created"),
			ContainSubstring(`the same command continues the search "searched"`)))
		Expect(*get("searched-3").Spec.Suspend).To(BeTrue())
		uid := run.UID
		rate := run.Spec.Algorithm.Optimizer.LearningRate

		Expect(kube.Patch(context.Background(), get("searched-1"), client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"rl.tinker-operator.dev/sweep-stopped":"true"}}}`)))).To(Succeed())
		Expect(search(func() bool { return !*get("searched-3").Spec.Suspend })).To(SatisfyAll(
			ContainSubstring("searched-1 has test/pass@1 none at step 20"), Not(ContainSubstring("created"))))
		Expect(get("searched-3").UID).To(Equal(uid))
		Expect(run.Labels).To(HaveKeyWithValue("sweep.rl.tinker-operator.dev/learningRate",
			strconv.FormatFloat(rate, 'g', -1, 64)))
		Expect(*get("searched-1").Spec.Suspend).To(BeTrue())

		arguments = append(arguments, "--search-seed", "1")
		got := tinker(w.namespace, arguments...)
		Expect(got.code).To(Equal(cli.ExitFailure))
		Expect(got.stderr).To(ContainSubstring("choose another --sweep"))
	})

	It("suspends, resumes, scales, forks and retries", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(20)})
		w.eventually(run, func(g Gomega) {
			g.Expect(run.Status.Checkpoints).To(HaveLen(1))
			g.Expect(run.Status.Checkpoints[0].Step).To(BeEquivalentTo(20), "the run starts with a checkpoint of step 0")
		})
		read := func() *v1alpha1.TrainingRun {
			Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
			return run
		}
		Expect(succeeds(w.namespace, "scale", "arithmetic", "--replicas", "3")).To(ContainSubstring("is scaled to 3 workers"))
		Expect(*read().Spec.Rollouts.Workers).To(BeEquivalentTo(3))
		Expect(succeeds(w.namespace, "suspend", "arithmetic")).To(ContainSubstring("stops at the next saved state"))
		Expect(*read().Spec.Suspend).To(BeTrue())
		Expect(succeeds(w.namespace, "suspend", "arithmetic")).To(ContainSubstring("is suspended already"))
		Expect(succeeds(w.namespace, "resume", "arithmetic")).To(ContainSubstring("continues"))
		Expect(*read().Spec.Suspend).To(BeFalse())
		Expect(tinker(w.namespace, "retry", "arithmetic").stderr).To(ContainSubstring("has not failed"))

		Expect(tinker(w.namespace, "fork", "arithmetic", "--step", "10").stderr).To(ContainSubstring("choose one of 20"))
		Expect(succeeds(w.namespace, "fork", "arithmetic", "--step", "20", "--set",
			"spec.algorithm.steps=5")).To(Equal("trainingrun arithmetic-s20 created\n"))
		forked := &v1alpha1.TrainingRun{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "arithmetic-s20"},
			forked)).To(Succeed())
		Expect(forked.Spec.InitFrom.Checkpoint).To(Equal("tinker://model/weights/s000020"))
		Expect(forked.Spec.Algorithm.Steps).To(BeEquivalentTo(5))

		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseConfigRejected, Attempt: 1, Message: "no",
			Progress: progress(20)})
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.State).To(Equal(v1alpha1.StateFailed)) })
		Expect(succeeds(w.namespace, "retry", "arithmetic")).To(ContainSubstring("is tried again"))
		Expect(*read().Spec.RetryGeneration).To(BeEquivalentTo(1))
	})

	It("says what a run would do", func() {
		w := newEnv()
		file := filepath.Join("..", "..", "config", "samples", "arithmetic.yaml")
		var own map[string]any
		Expect(json.Unmarshal([]byte(succeeds(w.namespace, "plan", "-f", file, "-o", "json")), &own)).To(Succeed())
		Expect(own).To(SatisfyAll(HaveKeyWithValue("tasks", 7994.0), HaveKey("prompts")), "by the environment of the file")
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		_, alone, _ := strings.Cut(string(data), "\n---\n")
		got := tinkerInput(w.namespace, alone, "plan", "-f", "-")
		Expect(got.code).To(Equal(cli.ExitFailure))
		Expect(got.stderr).To(ContainSubstring("the run would wait (EnvironmentNotUsable)"))
		Expect(tinkerInput(w.namespace, strings.ReplaceAll(alone, "arithmetic", "aritmetic"), "plan", "-f",
			"-").stderr).NotTo(ContainSubstring("Did you mean"))
		w.awaitProbedEnvironment()
		Expect(tinkerInput(w.namespace, strings.ReplaceAll(alone, "arithmetic", "aritmetic"), "plan", "-f",
			"-").stderr).To(ContainSubstring("Did you mean arithmetic?"))
		var plan map[string]any
		planned := tinkerInput(w.namespace, alone, "plan", "-f", "-", "-o", "json")
		Expect(json.Unmarshal([]byte(planned.stdout), &plan)).To(Succeed(), planned.stderr)
		Expect(plan).To(SatisfyAll(HaveKeyWithValue("tasks", 900.0), HaveKeyWithValue("groups", 1920.0),
			HaveKeyWithValue("episodes", 15360.0),
			HaveKeyWithValue("evaluations", 4.0), HaveKeyWithValue("evaluationEpisodes", 400.0)))
		Expect(tinker(w.namespace, "plan", "-f", file, "--set",
			"spec.algorithm.tasksPerStep=0").stderr).To(ContainSubstring("spec.algorithm.tasksPerStep"))
	})

	It("says what the endpoint will refuse of a run", func() {
		w := newEnv()
		file := filepath.Join("..", "..", "config", "samples", "arithmetic.yaml")
		run, first := w.startedRun()
		fixed := w.runFile(run, 1).Fixed
		plan := func(arguments ...string) string {
			return succeeds(w.namespace, append([]string{"plan", "-f", file, "--name", "planned", "--set",
				"spec.tinker.baseURL=" + fixed.BaseURL}, arguments...)...)
		}
		Expect(plan()).To(ContainSubstring("no run of the namespace has checked this endpoint"))
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1,
			Progress: w.progressWith(run, 1, "adam.grad_clip_norm")})
		w.advance(11 * time.Second)
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Capabilities).NotTo(BeNil()) })
		Expect(plan()).To(SatisfyAll(ContainSubstring("nothing that run arithmetic has checked"),
			ContainSubstring("adam.beta2")))
		Expect(plan("--set", "spec.algorithm.optimizer.gradClipNorm=1")).To(SatisfyAll(
			ContainSubstring("algorithm.optimizer.gradClipNorm (ignored): set it to 0"),
			ContainSubstring("as run arithmetic found")))
		Expect(plan("--set", "spec.model.name=tinkersim/byte-136k-countdown")).To(
			ContainSubstring("no run of the namespace has checked this endpoint"))
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
		Expect(tinker(w.namespace, "logs", "elsewhere").stderr).To(SatisfyAll(ContainSubstring(other.namespace),
			ContainSubstring(third.namespace)))
		Expect(tinker(w.namespace, "logs", "arithmetic").stderr).To(ContainSubstring("no learner's pod"))
	})

	It("completes the names of runs", func() {
		w := emptyEnv()
		w.create()
		var stdout bytes.Buffer
		env := cli.IO{Stdout: &stdout, Stderr: &bytes.Buffer{}, Now: time.Now}
		Expect(plugin.Run(context.Background(), env, []string{
			"kubectl_complete-tinker", fmt.Sprint("--kubeconfig=", kubeconfig), fmt.Sprint("--namespace=", w.namespace), "why",
			"",
		})).To(BeZero())
		Expect(stdout.String()).To(HavePrefix("arithmetic\n"))
	})
})
