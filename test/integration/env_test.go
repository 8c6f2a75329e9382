// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// env is a namespace with a manager of its own, and with the spec's clock, pods and learners.
type env struct {
	namespace string
	clock     *clock
	learners  *learners
	writes    *writes
	kubelet   *kubelet
	statuses  *statusLog
	// view is the cache of the manager; nil while none runs.
	view client.Reader
	// reads are the runs that the manager has read.
	reads *reads
	stop  func()
	// stopping is closed once the manager is being stopped.
	stopping <-chan struct{}
}

// newEnv makes a namespace, starts its kubelet and a manager; all end with the spec.
func newEnv() *env {
	GinkgoHelper()
	w := emptyEnv()
	w.startManager(nil)
	return w
}

// emptyEnv makes a namespace without a manager.
func emptyEnv() *env {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-",
		// Every pod must be one that the restricted profile lets through.
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Expect(kube.Create(context.Background(), namespace)).To(Succeed())
	w := &env{
		namespace: namespace.Name,
		clock:     &clock{},
		learners:  &learners{replies: map[string]func() contract.HeartbeatReply{}, records: map[string][]contract.Record{}},
		writes:    &writes{},
		reads:     &reads{versions: map[types.UID]uint64{}},
		stop:      func() {},
	}
	w.kubelet = startKubelet(namespace.Name)
	w.statuses = recordStatuses(namespace.Name)
	DeferCleanup(func() { w.stop() })
	DeferCleanup(w.describeFailure)
	return w
}

// describeFailure writes the objects of the namespace to the report of a spec that has failed.
func (w *env) describeFailure() {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, kind := range []string{"trainingruns,rewardenvironments", "jobs", "pods"} {
		output, _ := kubectl(w.namespace, "get", kind, "-o", "yaml")
		GinkgoWriter.Println(output)
	}
}

// managerOptions changes the manager of a spec.
type managerOptions struct {
	// fault is the controllers' test hook.
	fault func(point string) error
	// newClient wraps the manager's client.
	newClient client.NewClientFunc
	// image and key are the manager's own; the usual ones are used if they are not given.
	image string
	key   []byte
	// identity is a release's identity. If it is empty, the manager acts in every namespace.
	identity string
	// pods are the defaults of pods.
	pods v1alpha1.PodOverrides
	// sharedServers lets it run environment servers as Deployments.
	sharedServers bool
	// warmPools lets it make claims to warm pools.
	warmPools bool
	// endpoints are the TinkerEndpoints that it serves, in the namespace of the spec.
	endpoints []string
	// fixed are the labels by which budgets may select runs.
	fixed endpoint.FixedLabels
	// as is the manager's user at the API server; nil means an administrator.
	as *rest.Config
}

// startManager starts a manager of the namespace. It first stops a former manager.
func (w *env) startManager(o *managerOptions) {
	GinkgoHelper()
	if o == nil {
		o = &managerOptions{}
	}
	w.stop()
	settings := rest.CopyConfig(cmp.Or(o.as, apiConfig))
	settings.Wrap(w.writes.counting)
	cacheOptions, err := controller.CacheOptions([]string{w.namespace}, o.sharedServers)
	Expect(err).NotTo(HaveOccurred())
	managerKey := o.key
	if managerKey == nil {
		managerKey = bytes.Repeat([]byte{7}, 32)
	}
	skip := true
	mgr, err := ctrl.NewManager(settings, ctrl.Options{
		Scheme:     scheme,
		Cache:      cacheOptions,
		NewClient:  w.reads.by(o.newClient),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	w.stopping = ctx.Done()
	Expect(controller.Setup(ctx, mgr, controller.Options{
		ManagerKey: managerKey,
		Identity:   o.identity,
		Namespaces: []string{w.namespace},
		Settings: desired.Settings{Image: cmp.Or(o.image, "tinker-operator:test"), DefaultBaseURL: "http://tinkersim",
			PodDefaults: o.pods, SharedServers: o.sharedServers, Namespace: w.namespace, Broker: desired.BrokerSettings{
				AccessMode: corev1.ReadWriteOnce, StorageSize: resource.MustParse("1Gi")}},
		WarmPools:      o.warmPools,
		Endpoints:      controller.Endpoints{Enabled: len(o.endpoints) > 0, Names: o.endpoints, Fixed: o.fixed},
		Post:           w.learners.post,
		HeartbeatEvery: 50 * time.Millisecond,
		Now:            w.clock.now,
		Fault:          o.fault,
	})).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.view = mgr.GetCache()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			w.view = nil
			cancel()
			Expect(<-done).To(Succeed())
		})
	}
}

// clock is the machine's clock plus the time that the spec adds. Once it is stopped, only the spec moves it.
type clock struct {
	mu      sync.Mutex
	stopped time.Time
	ahead   time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped.Add(c.ahead)
	}
	return time.Now().Add(c.ahead)
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = time.Now()
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// learners answer heartbeats, by the address that the spec gave the pod.
type learners struct {
	mu       sync.Mutex
	replies  map[string]func() contract.HeartbeatReply
	requests []poll
	sequence int64
	// records of the learners, by address.
	records map[string][]contract.Record
}

type poll struct {
	address string
	request contract.HeartbeatRequest
}

func (l *learners) post(_ context.Context, target poller.Target) (contract.HeartbeatReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, poll{target.Address, target.Request})
	reply, ok := l.replies[target.Address]
	if !ok {
		return contract.HeartbeatReply{}, errors.New("connection refused")
	}
	answer := reply()
	answer.RunUID = target.Request.RunUID
	if target.Request.HistoryVersion > 0 {
		all := l.records[target.Address]
		left := all[min(int(target.Request.KnownRecords), len(all)):]
		answer.Records = left[:min(len(left), contract.MaxRecords)]
	}
	// Every answer differs from the last, so that a reconcile follows.
	l.sequence++
	answer.Sequence = l.sequence
	return answer, nil
}

// answer sets the reply of the learner at an address from now on.
func (l *learners) answer(ip string, reply contract.HeartbeatReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies[ip+":7444"] = func() contract.HeartbeatReply { return reply }
}

// record adds records to the learner at an address, numbered in their order.
func (l *learners) record(ip string, records ...contract.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, record := range records {
		record.Number = int64(len(l.records[ip+":7444"]) + 1)
		l.records[ip+":7444"] = append(l.records[ip+":7444"], record)
	}
}

// silence removes the learner at an address, and waits until the manager has noticed.
func (l *learners) silence(ip string) {
	GinkgoHelper()
	l.mu.Lock()
	delete(l.replies, ip+":7444")
	l.mu.Unlock()
	before := len(l.received(ip))
	Eventually(func() int { return len(l.received(ip)) }).Should(BeNumerically(">=", before+2))
}

// awaitReply waits until a heartbeat that begins from now on is answered, if any learner answers at all.
func (l *learners) awaitReply() {
	GinkgoHelper()
	answered := func() (int64, int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.sequence, len(l.replies)
	}
	before, answering := answered()
	if answering == 0 {
		return
	}
	Eventually(func() int64 { now, _ := answered(); return now }, "5m", "2ms").Should(BeNumerically(">=", before+2))
}

// received returns the requests to an address.
func (l *learners) received(ip string) []contract.HeartbeatRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []contract.HeartbeatRequest
	for _, a := range l.requests {
		if a.address == ip+":7444" {
			all = append(all, a.request)
		}
	}
	return all
}

// writes counts the manager's writes to the API server. It leaves out writes that the server refused because the object
// had changed meanwhile: the specs change objects more often than users do.
type writes struct {
	mu  sync.Mutex
	log []string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *writes) counting(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if r.Method != http.MethodGet && (err != nil || response.StatusCode != http.StatusConflict) {
			w.mu.Lock()
			w.log = append(w.log, fmt.Sprintf("%s %s", r.Method, r.URL.Path))
			w.mu.Unlock()
		}
		return response, err
	})
}

func (w *writes) since(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.log[min(n, len(w.log)):]...)
}

func (w *writes) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.log)
}
