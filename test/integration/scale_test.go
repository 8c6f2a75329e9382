// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// manySteps are more than are trained here.
const manySteps = 100_000

// memoryLimit is that of the chart's manager.
const memoryLimit = 128 << 20

// scale says how many runs there are at once and for how long they are watched: SCALE_RUNS=200 is the
// measurement, fewer are the test.
func scale() (runs int, watched time.Duration) {
	if runs, err := strconv.Atoi(os.Getenv("SCALE_RUNS")); err == nil && runs > 0 {
		return runs, time.Minute
	}
	return 12, 10 * time.Second
}

// The manager is the real program in a process of its own. Heartbeats are HTTPS with each run's own token and
// certificate, and each learner trains a step a second.
var _ = Describe("Many runs under one manager", func() {
	It("are all followed, with few writes and little memory", func() {
		count, watched := scale()
		w := emptyEnv()
		w.environment()
		for i := range count {
			w.create(func(run *v1alpha1.TrainingRun) {
				run.Name = fmt.Sprintf("run-%03d", i)
				run.Spec.Rollouts.Workers = new(int32(1))
				run.Spec.Algorithm.Steps = new(int64(manySteps))
			})
		}
		f := newFleet(w)
		began := time.Now()
		manager := f.startManager()
		f.follow(count, 1)
		started := time.Since(began)

		written, cpu := f.countWrites(), manager.cpu()
		before := written.Load()
		time.Sleep(watched)
		writes, used := float64(written.Load()-before), manager.cpu()-cpu
		f.follow(count, int64(watched.Seconds()))
		resident, peak := manager.memory("VmRSS"), manager.memory("VmHWM")
		AddReportEntry("manager", ReportEntryVisibilityAlways, fmt.Sprintf(
			"%d runs trained a first step after %.0f s; then %.1f writes a run and minute, %.0f ms of CPU a second; resident %d MiB, at most %d MiB",
			count, started.Seconds(), writes/float64(count)/watched.Minutes(), 1000*used.Seconds()/watched.Seconds(), resident>>20, peak>>20))
		Expect(writes/float64(count)).To(And(BeNumerically(">", 0), BeNumerically("<=", mostWrites*watched.Minutes()+1)), "writes a run")
		Expect(peak).To(BeNumerically("<", memoryLimit), "bytes of the manager")
	})
})

// fleet is the learners of a world, each at a loopback address of its own.
type fleet struct {
	world *env
	key   []byte
	// at is when the learner of a pod started.
	at map[string]time.Time
}

func newFleet(w *env) *fleet {
	return &fleet{world: w, key: bytes.Repeat([]byte{7}, 32), at: map[string]time.Time{}}
}

// follow has learners run where there are pods for them, and waits until the statuses of all runs say that
// this step is committed.
func (f *fleet) follow(count int, step int64) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		f.runLearners(g)
		var runs v1alpha1.TrainingRunList
		g.Expect(kube.List(context.Background(), &runs, client.InNamespace(f.world.namespace))).To(Succeed())
		g.Expect(runs.Items).To(HaveLen(count))
		for i := range runs.Items {
			g.Expect(runs.Items[i].Status.Step).To(HaveValue(BeNumerically(">=", step)), runs.Items[i].Name)
		}
	}, 5*time.Minute, time.Second).Should(Succeed())
}

// runLearners runs the learners' pods that are pending.
func (f *fleet) runLearners(g Gomega) {
	var pods corev1.PodList
	g.Expect(kube.List(context.Background(), &pods, client.InNamespace(f.world.namespace),
		client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleLearner})).To(Succeed())
	for i := range pods.Items {
		pod := &pods.Items[i]
		if _, runs := f.at[pod.Name]; runs || pod.Status.Phase != corev1.PodPending {
			continue
		}
		n := len(f.at)
		ip := fmt.Sprintf("127.9.%d.%d", n/250, n%250+1)
		f.at[pod.Name] = time.Now()
		f.serve(pod.Labels[v1alpha1.LabelRunUID], ip, time.Now())
		g.Expect(run(context.Background(), pod, desired.LearnerContainer, ip, time.Now())).To(Succeed())
	}
}

// serve answers the heartbeats of one run until the spec ends.
func (f *fleet) serve(uid, ip string, began time.Time) {
	GinkgoHelper()
	secrets, err := contract.DeriveCredentials(f.key, uid)
	Expect(err).NotTo(HaveOccurred())
	tls, err := secrets.ServerTLS()
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(desired.HeartbeatPort)))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{TLSConfig: tls, ReadHeaderTimeout: time.Minute, Handler: heartbeat.Handler(uid, secrets.AuthorizesManager,
		func(contract.HeartbeatRequest) contract.HeartbeatReply {
			step := int64(time.Since(began).Seconds())
			at := progress(step)
			at.Steps = manySteps
			return contract.HeartbeatReply{RunUID: uid, Attempt: 1, Sequence: step, Progress: at}
		})}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	DeferCleanup(server.Close)
}

// countWrites counts the changes of runs from now on.
func (f *fleet) countWrites() *atomic.Int64 {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(apiConfig, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	changes, err := watcher.Watch(context.Background(), &v1alpha1.TrainingRunList{}, client.InNamespace(f.world.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(changes.Stop)
	written := &atomic.Int64{}
	go func() {
		for change := range changes.ResultChan() {
			if change.Type == watch.Modified {
				written.Add(1)
			}
		}
	}()
	return written
}

// program is the manager in a process of its own.
type program struct{ pid int }

// startManager builds the manager as the image has it, and runs it with the chart's settings.
func (f *fleet) startManager() program {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	key, binary := filepath.Join(folder, "manager-key"), filepath.Join(folder, "manager")
	Expect(os.WriteFile(key, f.key, 0o600)).To(Succeed())
	output, err := exec.Command("go", "build", "-o", binary, "../../cmd/manager").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	log, err := os.Create(filepath.Join(folder, "manager.log"))
	Expect(err).NotTo(HaveOccurred())
	command := exec.Command(binary, "--kubeconfig="+kubeconfig, "--manager-key-file="+key, "--image=tinker-operator:test",
		"--namespaces="+f.world.namespace, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	command.Env = append(os.Environ(), "GOMEMLIMIT=48MiB")
	command.Stdout, command.Stderr = log, log
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		_ = log.Close()
	})
	return program{command.Process.Pid}
}

// memory is a line of the process's status, in bytes.
func (p program) memory(field string) int64 {
	GinkgoHelper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(content)) {
		if name, rest, _ := strings.Cut(line, ":"); name == field {
			kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			Expect(err).NotTo(HaveOccurred())
			return kilobytes << 10
		}
	}
	Fail("the process has no " + field)
	return 0
}

// cpu is the time that the process has computed so far.
func (p program) cpu() time.Duration {
	GinkgoHelper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	Expect(err).NotTo(HaveOccurred())
	// The name, in brackets, may hold spaces; user and system time are the 12th and 13th field after it.
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		Expect(err).NotTo(HaveOccurred())
		ticks += n
	}
	const ticksPerSecond = 100
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
