// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// The bounds of a start, which mostly imports packages: startSeconds is the runner's own limit, and startTimeout adds
// the time to end a program. Packages such as torch take a minute and more from a cold disk.
const (
	startSeconds = 180
	startTimeout = (startSeconds + 60) * time.Second
)

// podPause is the least time between two starts in one pod: other pods are called meanwhile.
const podPause = 2 * time.Second

// callPauses are the pauses between the attempts of a call whose program cannot be called.
var callPauses = wait.Backoff{First: 200 * time.Millisecond, Longest: 20 * time.Second}

// function is a function of a user, which a program of a runner calls.
type function struct {
	host *Host
	name string
	spec protocol.Spec
	// wanted describes the functions that the code has to define, and entries are the names by which its program calls
	// them.
	wanted  string
	entries []string
	// unnamed says that the user has named no function of the code: then the function has the name of an entry.
	unnamed bool
	// check is the call that checks each start of a plain program; nil for other programs.
	check *client.Call
	// hasGateway says that the calls have a gateway.
	hasGateway bool
	// entry is the name of the entry that the program has found, as a string.
	entry atomic.Value

	mu sync.Mutex
	// current are the newest starts, by the addresses of runners.
	current map[string]*start
}

// start is a program that was started, or is being started.
type start struct {
	address string // of its runner
	began   time.Time
	done    chan struct{} // closed when the other fields are set
	conn    *client.Client
	*client.Program
	err error
}

func newFunction(host *Host, o Options, wanted string, entries ...string) (*function, error) {
	base := protocol.Spec{
		Env: host.Env, InheritEnv: host.InheritEnv, Processes: o.Processes, Concurrency: o.Concurrency,
		Limits: protocol.Limits{StartSeconds: startSeconds, CallSeconds: o.Timeout.Seconds(), MemoryBytes: o.MemoryBytes},
	}
	spec, err := python.Spec(cmp.Or(host.Interpreter, "python3"), python.Function{Code: o.Code, Module: o.Module,
		Name: o.Function, Entry: o.entry}, base)
	if err != nil {
		return nil, err
	}
	f, err := newProgram(host, spec, wanted, entries...)
	if err == nil {
		f.unnamed = o.Function == ""
	}
	return f, err
}

// newProgram returns the function by which a program of any kind is called.
func newProgram(host *Host, spec protocol.Spec, wanted string, entries ...string) (*function, error) {
	if _, invalid := spec.Validate(); invalid != nil {
		return nil, invalid
	}
	return &function{host: host, name: host.name(), spec: spec, wanted: wanted, entries: entries}, nil
}

// ready returns the program once it can be called, at the runner that a call with this key prefers. It starts the
// program at each runner at which it does not run, or no longer runs; concurrent calls wait for the same start. A
// runner that is still starting the program, or that has gone, is passed over while the program runs at another one.
func (f *function) ready(ctx context.Context, key uint64) (*start, error) {
	addresses, err := f.host.addresses(ctx)
	if err != nil {
		return nil, err
	}
	var starts []*start
	f.mu.Lock()
	for _, address := range inOrder(addresses, key) {
		starts = append(starts, f.startAt(ctx, address))
	}
	f.mu.Unlock()
	for _, s := range starts {
		if wait.IsClosed(s.done) && !s.isOver() {
			return s, nil
		}
	}
	return first(ctx, starts)
}

// startAt returns the newest start at an address, or begins one. The caller holds the lock.
func (f *function) startAt(ctx context.Context, address string) *start {
	pods := f.host.Pods
	if s := f.current[address]; s != nil && (!s.isOver() || pods != nil && pods.Now().Sub(s.began) < podPause) {
		return s
	}
	if f.current == nil {
		f.current = map[string]*start{}
	}
	s := &start{address: address, done: make(chan struct{})}
	if pods != nil {
		s.began = pods.Now()
	}
	f.current[address] = s
	go f.begin(context.WithoutCancel(ctx), s)
	return s
}

// first returns the first start that succeeds. If all starts fail, it returns one of them and its error.
func first(ctx context.Context, starts []*start) (*start, error) {
	ended := make(chan *start, len(starts))
	for _, s := range starts {
		go func() {
			<-s.done
			ended <- s
		}()
	}
	var failed *start
	for range starts {
		select {
		case s := <-ended:
			if !s.isOver() {
				return s, nil
			}
			failed = cmp.Or(failed, s)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return failed, cmp.Or(failed.err, client.ErrLost)
}

// isOver reports whether the start has failed, or its connection has ended, so that another start has to follow.
func (s *start) isOver() bool {
	return wait.IsClosed(s.done) && (s.err != nil || wait.IsClosed(s.conn.Ended()))
}

func (f *function) begin(ctx context.Context, s *start) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	defer close(s.done)
	if s.conn, s.err = f.host.connect(ctx, s.address); s.err != nil {
		return
	}
	if f.hasGateway && !s.conn.HasGateways() {
		s.err = fmt.Errorf("the runner at %s has version %q and carries no connections of agents to the gateway: give the "+
			"pods, or the template of their warm pool, the operator's image of this release", s.address, s.conn.Runner)
		return
	}
	if s.Program, s.err = s.conn.Start(ctx, f.name, f.spec); s.err != nil {
		s.err = f.describeStart(s.err)
		return
	}
	if f.wanted == "" {
		s.err = f.probe(ctx, s)
		return
	}
	var said spawn.Start
	if err := json.Unmarshal(s.Value, &said); err != nil || !slices.Contains(f.entries, said.Entry) {
		s.err = &CodeError{Code: protocol.CodeWrongSignature, text: fmt.Sprintf("The code defines %s: define %s.",
			cmp.Or(said.Entry, "no function"), f.wanted)}
		_ = s.Stop(ctx) // an error says that the connection has ended, and the program with it
		return
	}
	f.entry.Store(said.Entry)
	if said.Afresh != "" || len(said.Left) > 0 {
		f.log().Info("each episode imports modules itself", "modules", said.Left, "reason", said.Afresh)
	}
}

// describeStart describes why code cannot be loaded.
func (f *function) describeStart(err error) error {
	err = describe(err)
	if wrong, ok := errors.AsType[*CodeError](err); ok && wrong.Code == protocol.CodeMissingFunction && f.unnamed {
		wrong.text = fmt.Sprintf("The code defines no function: define %s, or name another in the field function.", f.wanted)
	}
	return err
}

// probe makes the call that shows whether a program can be called.
func (f *function) probe(ctx context.Context, s *start) error {
	var err error
	if f.check != nil {
		_, err = s.Call(ctx, *f.check)
	} else if _, err = s.Open(ctx, f.name, 0); err == nil {
		_, err = s.CloseSession(ctx, f.name)
	}
	if err != nil {
		_ = s.Stop(ctx) // an error says that the connection has ended, and the program with it
		return describe(err)
	}
	return nil
}

// forget drops a start, so that the program is started anew: the runner does not know it.
func (f *function) forget(s *start) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current[s.address] == s {
		delete(f.current, s.address)
	}
}

// Check returns nil once the function can be called. The error is a *CodeError if its code is wrong.
func (f *function) Check(ctx context.Context) error {
	_, err := f.ready(ctx, 0)
	return err
}

// call calls the function. While it cannot be called, the call waits, and the time limit of the episode does not run:
// the reply is not at fault, and nothing is scored without the function.
func (f *function) call(ctx context.Context, call client.Call) (json.RawMessage, error) {
	for between := (wait.Pauses{Backoff: callPauses}); ; {
		s, err := f.ready(ctx, keyOf(call))
		if err == nil {
			var result client.Result
			if result, err = s.Call(ctx, call); err == nil {
				return result.Value, nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case client.After(err, true) == client.Permanent:
			return nil, describe(err)
		case client.IsUnknown(err):
			f.forget(s)
		}
		if !f.host.Wait {
			return nil, &environment.Fault{Err: describe(err)}
		}
		f.log().Warn("a function cannot be called and is called again", "pause", between.Base(between.Failures+1).String(),
			"err", err)
		resume := environment.RecorderFrom(ctx).Pause()
		err = between.Sleep(ctx)
		resume()
		if err != nil {
			return nil, err
		}
	}
}

func (f *function) log() *slog.Logger { return cmp.Or(f.host.Logger, slog.Default()) }
