// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package connections

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tinker-operator/tinker-operator/test/networkpolicy"
)

// Recorder records connections between pods until it is stopped.
type Recorder struct {
	cancel context.CancelFunc
	done   chan struct{}
	fd     int

	mu     sync.Mutex
	opened map[opened]time.Time // when the first equal one was seen
	pods   map[netip.Addr][]lease
	err    error
}

// lease is the time for which a pod has an address.
type lease struct {
	since time.Time
	pod   networkpolicy.Pod
}

// Start records the connections of the cluster that a REST configuration names. The pid is of a process in the network
// namespace with the pods' bridge.
func Start(config *rest.Config, pid int) (*Recorder, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	fd, err := open(pid)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{
		cancel: cancel, done: make(chan struct{}), fd: fd,
		opened: map[opened]time.Time{}, pods: map[netip.Addr][]lease{},
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { r.see(object.(*corev1.Pod)) },
	})
	if err != nil {
		cancel()
		return nil, errors.Join(err, unix.Close(fd))
	}
	factory.Start(ctx.Done())
	go r.record(ctx)
	return r, nil
}

// record receives openings until the recorder is stopped.
func (r *Recorder) record(ctx context.Context) {
	defer close(r.done)
	for ctx.Err() == nil {
		found, ok, err := receive(r.fd)
		r.mu.Lock()
		r.err = errors.Join(r.err, err)
		if _, known := r.opened[found]; ok && !known {
			r.opened[found] = time.Now()
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// see notes the address of a pod. Pods with the address of their node are no peers of a NetworkPolicy.
func (r *Recorder) see(pod *corev1.Pod) {
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || pod.Spec.HostNetwork {
		return
	}
	seen := networkpolicy.Pod{Namespace: pod.Namespace, Labels: pod.Labels}
	r.mu.Lock()
	defer r.mu.Unlock()
	leases := r.pods[address]
	if n := len(leases); n == 0 || !leases[n-1].since.Equal(pod.CreationTimestamp.Time) ||
		!maps.Equal(leases[n-1].pod.Labels, pod.Labels) {
		r.pods[address] = append(leases, lease{since: pod.CreationTimestamp.Time, pod: seen})
	}
}

// Stop stops recording and returns the connections between pods, and the number of lost packets. If packets were lost,
// connections may be missing.
func (r *Recorder) Stop() (flows []networkpolicy.Flow, lost uint32, err error) {
	r.cancel()
	<-r.done
	stats, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err = errors.Join(r.err, err, unix.Close(r.fd)); err != nil {
		return nil, 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for found, at := range r.opened {
		from, known := r.podAt(found.from, at)
		to, other := r.podAt(found.to, at)
		if known && other {
			flows = append(flows, networkpolicy.Flow{From: from, To: to, Port: int32(found.port)})
		}
	}
	return flows, stats.Drops, nil
}

// podAt returns the pod that had an address at a time.
func (r *Recorder) podAt(address netip.Addr, at time.Time) (networkpolicy.Pod, bool) {
	leases := r.pods[address]
	for i := len(leases) - 1; i >= 0; i-- {
		if !leases[i].since.After(at) {
			return leases[i].pod, true
		}
	}
	return networkpolicy.Pod{}, false
}
