// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// manySteps is more than the number of steps that are trained here.
const manySteps = 100_000

// These are the goals of a measurement with 1,000 runs. memoryLimit is the memory limit of the chart's manager, which
// must be enough for 200 runs.
const (
	memoryLimit   = 128 << 20
	memoryGoal    = 256 << 20
	writesGoal    = 2.0
	startGoal     = 5 * time.Minute
	reconcileGoal = 50 * time.Millisecond
	failoverGoal  = 15 * time.Second
)

// newLearners is the time after the start of a learner during which the status of its run is written more often.
const newLearners = 2 * time.Minute

// scale says how many runs there are, and whether their manager is measured: SCALE_RUNS=1000 is the measurement, which
// takes ten minutes, and few runs are the test.
func scale() (runs int, measured bool) {
	if runs, err := strconv.Atoi(os.Getenv("SCALE_RUNS")); err == nil && runs > 0 {
		return runs, true
	}
	return 12, false
}

// The manager is the real program in a process of its own. Heartbeats are HTTPS with each run's own token and
// certificate, and each learner trains a step a second.
var _ = Describe("Many runs under one manager", func() {
	It("are all followed, with few writes and little memory", func() {
		count, measured := scale()
		w := emptyEnv()
		w.environment()
		for i := range count {
			w.create(func(run *v1alpha1.TrainingRun) {
				run.Name = fmt.Sprintf("run-%04d", i)
				run.Spec.Rollouts.Workers = new(int32(1))
				run.Spec.Algorithm.Steps = manySteps
				run.Spec.Checkpoints.EverySteps = new(int64(manySteps))
			})
		}
		f := newFleet(w)
		began := time.Now()
		manager := f.startManager()
		f.follow(count, 1)
		if measured {
			f.measure(manager, count, time.Since(began))
			return
		}
		written := f.countWrites()
		time.Sleep(10 * time.Second)
		writes := written.Load()
		f.follow(count, 10)
		Expect(float64(writes)/float64(count)).To(And(BeNumerically(">", 0), BeNumerically("<=", mostWrites/6+1)),
			"writes a run")
		Expect(manager.memory("VmHWM")).To(BeNumerically("<", memoryLimit), "bytes of the manager")
	})
})

// measure reports how much the manager needs in a minute once the learners are no longer new, and how long another
// manager takes to replace a killed manager. Times depend on the machine and are only printed; every other figure fails
// the spec if it misses its goal.
func (f *fleet) measure(manager program, count int, started time.Duration) {
	GinkgoHelper()
	standby := f.startManager()
	time.Sleep(time.Until(f.newest().Add(newLearners + 10*time.Second)))
	written, cpu, reconciles := f.countWrites(), manager.cpu(), manager.reconciles()
	before := written.Load()
	time.Sleep(time.Minute)
	writes, used := float64(written.Load()-before)/float64(count), manager.cpu()-cpu
	slow := manager.reconciles().since(reconciles)
	resident, peak := manager.memory("VmRSS"), manager.memory("VmHWM")

	conditions := f.conditions()
	manager.kill()
	killed := time.Now()
	Eventually(func() int { return f.polledSince(killed) }, startGoal, 100*time.Millisecond).Should(Equal(count))
	followed := time.Since(killed)
	f.await(count, func(run types.UID) int64 { return int64(killed.Sub(f.began[run]).Seconds()) })
	failover := time.Since(killed)
	changes := 0
	for name, now := range f.conditions() {
		if now != conditions[name] {
			changes++
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	AddReportEntry("manager", ReportEntryVisibilityAlways, fmt.Sprintf(`
runs trained, %d under one manager: first steps of all after %.0f s (goal: %.0f)
runs trained: status writes a run and minute: %.2f (goal: %.0f)
runs trained: p99 of %d reconciles: at most %v (goal: %v)
runs trained: memory: resident %d MiB, at most %d MiB (goal: %d), CPU %.0f ms a second
runs trained: all learners are polled again %.1f s after the manager is killed (goal: %.0f)
runs trained: all statuses are current %.1f s after that, and %d of them changed a condition (goal: 0)
runs trained: load of the machine %s`,
		count, started.Seconds(), startGoal.Seconds(), writes, writesGoal, slow.count, slow.p99(), reconcileGoal,
		resident>>20, max(peak, standby.memory("VmHWM"))>>20, memoryGoal>>20, 1000*used.Seconds()/60,
		followed.Seconds(), failoverGoal.Seconds(), (failover-followed).Seconds(), changes, load))
	Expect(writes).To(And(BeNumerically(">", 0), BeNumerically("<=", writesGoal*1.05)), "status writes a run")
	Expect(peak).To(BeNumerically("<", memoryGoal), "bytes of the manager")
	Expect(changes).To(BeZero(), "conditions that a failover changes")
}

// fleet is the learners of an environment, each at a loopback address of its own.
type fleet struct {
	env *env
	key []byte
	// binary is the manager; empty before it is built.
	binary string
	// at is the time at which the learner of a pod started, and began the time at which the learner of a run did.
	at    map[string]time.Time
	began map[types.UID]time.Time
	// asked is the time at which the learner of a run was last polled, by the UID of the run.
	asked sync.Map
}

func newFleet(w *env) *fleet {
	return &fleet{env: w, key: bytes.Repeat([]byte{7}, 32), at: map[string]time.Time{}, began: map[types.UID]time.Time{}}
}

// follow starts learners for their pods, and waits until the statuses of all runs say that this step is committed.
func (f *fleet) follow(count int, step int64) {
	GinkgoHelper()
	f.await(count, func(types.UID) int64 { return step })
}

// await is follow with a step for each run.
func (f *fleet) await(count int, step func(types.UID) int64) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		f.runLearners(g)
		var runs v1alpha1.TrainingRunList
		g.Expect(kube.List(context.Background(), &runs, client.InNamespace(f.env.namespace))).To(Succeed())
		g.Expect(runs.Items).To(HaveLen(count))
		for i := range runs.Items {
			g.Expect(runs.Items[i].Status.Step).To(HaveValue(BeNumerically(">=", step(runs.Items[i].UID))), runs.Items[i].Name)
		}
	}, startGoal+time.Minute, time.Second).Should(Succeed())
}

// polledSince returns the number of learners that were polled since a time.
func (f *fleet) polledSince(since time.Time) (learners int) {
	for _, at := range f.asked.Range {
		if at.(time.Time).After(since) {
			learners++
		}
	}
	return learners
}

// newest returns the time at which the last learner started.
func (f *fleet) newest() time.Time {
	return slices.MaxFunc(slices.Collect(maps.Values(f.at)), time.Time.Compare)
}

// conditions returns the conditions of all runs, without their messages.
func (f *fleet) conditions() map[string]string {
	GinkgoHelper()
	var runs v1alpha1.TrainingRunList
	Expect(kube.List(context.Background(), &runs, client.InNamespace(f.env.namespace))).To(Succeed())
	all := map[string]string{}
	for _, run := range runs.Items {
		for _, c := range run.Status.Conditions {
			all[run.Name] += fmt.Sprintf("%s=%s %s since %s; ", c.Type, c.Status, c.Reason, c.LastTransitionTime)
		}
	}
	return all
}

// runLearners runs the learners' pods that are pending.
func (f *fleet) runLearners(g Gomega) {
	var pods corev1.PodList
	g.Expect(kube.List(context.Background(), &pods, client.InNamespace(f.env.namespace),
		client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleLearner})).To(Succeed())
	for i := range pods.Items {
		pod := &pods.Items[i]
		if _, runs := f.at[pod.Name]; runs || pod.Status.Phase != corev1.PodPending {
			continue
		}
		n := len(f.at)
		ip := fmt.Sprintf("127.9.%d.%d", n/250, n%250+1)
		f.at[pod.Name] = time.Now()
		f.began[types.UID(pod.Labels[v1alpha1.LabelRunUID])] = f.at[pod.Name]
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
	server := &http.Server{TLSConfig: tls, ReadHeaderTimeout: time.Minute,
		Handler: heartbeat.Handler(uid, secrets.AuthorizesManager,
			func(contract.HeartbeatRequest) contract.HeartbeatReply {
				f.asked.Store(uid, time.Now())
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
	changes, err := watcher.Watch(context.Background(), &v1alpha1.TrainingRunList{}, client.InNamespace(f.env.namespace))
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
