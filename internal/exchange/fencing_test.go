// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/test/freeport"
)

func TestUnauthorizedWorkersAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(c *ClientConfig)
		want   error
	}{
		"a token of another run": {func(c *ClientConfig) { c.Credentials.Token = credentialsOf(t, "uid-2").Token },
			ErrUnauthorized},
		"no token":     {func(c *ClientConfig) { c.Credentials.Token = "" }, ErrUnauthorized},
		"another run":  {func(c *ClientConfig) { c.RunUID = "uid-2" }, ErrForeign},
		"another spec": {func(c *ClientConfig) { c.SpecDigest = "spec-2" }, ErrForeign},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLearner()
			s := serve(t, "", epochOf(1), l, Timing{})
			config := clientConfig(t, s.address)
			tc.change(&config)
			a := runClient(t, config, newWorker())
			if err := take(t, "end of Attend", a.ended); !errors.Is(err, tc.want) || !IsFinal(err) {
				t.Errorf("Attend: %v, want %v, which is final", err, tc.want)
			}
			if len(l.hellos) != 0 {
				t.Errorf("the learner received a Hello: got %v, want none", l.hellos)
			}
		})
	}
}

func TestWorkersTrustNoOtherCertificate(t *testing.T) {
	t.Parallel()
	l, w := newLearner(), newWorker()
	s := serve(t, "", epochOf(1), l, Timing{})
	config := clientConfig(t, s.address)
	config.Credentials.Certificate = credentialsOf(t, "uid-2").Certificate
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.hello(t.Context(), w); !errors.Is(err, ErrUnreachable) {
		t.Errorf("hello: %v, want %v", err, ErrUnreachable)
	}
	if len(l.hellos) != 0 {
		t.Errorf("the learner received a Hello: got %v, want none", l.hellos)
	}
}

// dialled returns a client and a connection on which nothing was sent.
func dialled(t *testing.T, address string) (*Client, *connection) {
	t.Helper()
	client, err := NewClient(clientConfig(t, address))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.release)
	return client, conn
}

func TestNothingIsAnsweredBeforeHello(t *testing.T) {
	t.Parallel()
	l := newLearner()
	s := serve(t, "", epochOf(1), l, Timing{})
	client, conn := dialled(t, s.address)
	client.setCurrent(conn)
	conn.retain()
	if _, err := client.Acquire(t.Context(), 1); !errors.Is(err, ErrHelloRequired) {
		t.Errorf("Acquire: %v, want %v", err, ErrHelloRequired)
	}
	for name, call := range map[string]func() error{
		"Submit": func() error {
			_, err := client.Submit(t.Context(), encodedGroup(1, 2, 4))
			return err
		},
		"Release": func() error { return client.Release(t.Context(), nil, "drain") },
		"Renew":   func() error { return client.renew(t.Context(), conn, newWorker()) },
	} {
		_, fresh := dialled(t, s.address)
		fresh.retain()
		client.setCurrent(fresh)
		conn = fresh
		if err := call(); !errors.Is(err, ErrHelloRequired) || IsFinal(err) {
			t.Errorf("%s: %v, want %v", name, err, ErrHelloRequired)
		}
	}
	if len(l.submitted)+len(l.renewed)+len(l.released) != 0 {
		t.Errorf("the learner received something: got %v, want 0", len(l.submitted)+len(l.renewed)+len(l.released))
	}
}

// informOf gives a client an attempt with its proof, as the reply of the attempt's learner would.
func informOf(t *testing.T, client *Client, attempt int32) {
	t.Helper()
	proof, err := credentialsOf(t, "uid-1").ProveAttempt("uid-1", attempt)
	if err != nil {
		t.Fatal(err)
	}
	client.attempt, client.proof = attempt, proof
}

// TestWorkersCannotFence checks that a worker alone cannot fence the learner: it lacks the signature of a learner of a
// higher attempt.
func TestWorkersCannotFence(t *testing.T) {
	t.Parallel()
	prove := func(uid string, attempt int32) []byte {
		proof, err := credentialsOf(t, uid).ProveAttempt(uid, attempt)
		if err != nil {
			t.Fatal(err)
		}
		return proof
	}
	for name, proof := range map[string][]byte{
		"without a proof":                nil,
		"with noise":                     bytes.Repeat([]byte("x"), 64),
		"with the proof of this attempt": prove("uid-1", 1),
		"with the proof of a later one":  prove("uid-1", 4),
		"with the proof of another run":  prove("uid-2", 3),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLearner()
			s := serve(t, "", epochOf(1), l, Timing{})
			bystander := runClient(t, clientConfig(t, s.address), newWorker())
			take(t, "answer", bystander.worker.replies)
			client, conn := dialled(t, s.address)
			client.attempt, client.proof = 3, proof
			_, err := conn.api.Hello(t.Context(), helloRequestToProto(client.epoch(), "worker-1", HelloRequest{}))
			if err := clientError(t.Context(), err); !errors.Is(err, ErrFenced) || IsFinal(err) {
				t.Errorf("Hello: %v, want %v, which is not final", err, ErrFenced)
			}
			if reply, err := bystander.Submit(t.Context(), encodedGroup(1, 2, 8)); err != nil || reply.Status != Accepted {
				t.Errorf("another worker's Submit: %v, %v", reply, err)
			}
			select {
			case higher := <-s.fenced:
				t.Errorf("the learner is fenced by attempt %d", higher)
			default:
			}
		})
	}
}

func TestALearnerOfALowerAttemptIsFenced(t *testing.T) {
	t.Parallel()
	l := newLearner()
	s := serve(t, "", epochOf(1), l, Timing{})
	bystander := runClient(t, clientConfig(t, s.address), newWorker())
	take(t, "answer", bystander.worker.replies)

	informed, conn := dialled(t, s.address)
	informOf(t, informed, 3)
	_, err := conn.api.Hello(t.Context(), helloRequestToProto(informed.epoch(), "worker-1", HelloRequest{}))
	if err := clientError(t.Context(), err); !errors.Is(err, ErrFenced) || IsFinal(err) {
		t.Errorf("Hello: %v, want %v", err, ErrFenced)
	}
	if higher := take(t, "the notice of the fence", s.fenced); higher != 3 {
		t.Errorf("fenced by attempt %d, want 3", higher)
	}
	// From now on, the learner answers no worker, whatever attempt the worker knows.
	_, fresh := dialled(t, s.address)
	_, err = fresh.api.Acquire(t.Context(), &pb.AcquireRequest{Epoch: epochOf(1), Worker: "worker-0",
		Free: 1})
	if err := clientError(t.Context(), err); !errors.Is(err, ErrFenced) {
		t.Errorf("Acquire: %v, want %v", err, ErrFenced)
	}
	_, err = fresh.api.Hello(t.Context(), helloRequestToProto(epochOf(0), "worker-2", HelloRequest{}))
	if err := clientError(t.Context(), err); !errors.Is(err, ErrFenced) {
		t.Errorf("Hello: %v, want %v", err, ErrFenced)
	}
	if len(s.fenced) != 0 {
		t.Errorf("the learner was notified of its fence twice: got %v, want none", s.fenced)
	}
}

func TestFenceEndsCallsInProgress(t *testing.T) {
	t.Parallel()
	l := newLearner()
	acquiring, fenced := make(chan struct{}, 1), make(chan struct{})
	l.acquire = func(context.Context, string, int) ([]Lease, error) {
		acquiring <- struct{}{}
		<-fenced
		return []Lease{exampleLease(1)}, nil
	}
	s := serve(t, "", epochOf(1), l, Timing{})
	a := runClient(t, clientConfig(t, s.address), newWorker())
	result := make(chan error, 1)
	go func() {
		leases, err := a.Acquire(t.Context(), 1)
		if len(leases) > 0 {
			err = errors.New("a lease of a fenced learner came through")
		}
		result <- err
	}()
	take(t, "Acquire", acquiring)
	s.Fence()
	close(fenced)
	if err := take(t, "end of Acquire", result); !errors.Is(err, ErrFenced) {
		t.Errorf("Acquire: %v, want %v", err, ErrFenced)
	}
	if len(s.fenced) != 0 {
		t.Errorf("the learner was notified of its own fence: got %v, want none", s.fenced)
	}
}

func TestALearnerThatRestartsOnTheSamePortIsGreetedAnew(t *testing.T) {
	t.Parallel()
	first := newLearner()
	s1 := serve(t, freeport.Address(t), epochOf(1), first, Timing{})
	w := newWorker()
	w.hello = HelloRequest{Stored: []StoredGroup{{Key: exampleKey(7)}}}
	a := runClient(t, clientConfig(t, s1.address), w)
	take(t, "answer", w.replies)
	if _, err := a.Submit(t.Context(), encodedGroup(7, 2, 8)); err != nil {
		t.Fatal(err)
	}
	s1.stop()

	second := newLearner()
	second.reply = HelloReply{Wanted: []rl.Key{exampleKey(7)}}
	serve(t, s1.address, epochOf(2), second, Timing{})
	if got := take(t, "Hello", second.hellos); len(got.Stored) != 1 {
		t.Errorf("the new learner received %+v, want the group that is stored", got)
	}
	if reply := takeUntil(t, "answer", w.replies,
		func(r HelloReply) bool { return len(r.Wanted) > 0 }); reply.Wanted[0] != exampleKey(7) {
		t.Errorf("wanted %v", reply.Wanted)
	}
	submitUntilAnswered(t, a, exampleGroup(7, 2, 8))
	take(t, "group", second.submitted)
	if a.Attempt() != 2 {
		t.Errorf("the worker knows of attempt %d, want 2", a.Attempt())
	}
}

// submitUntilAnswered submits again after transient errors, as a worker does.
func submitUntilAnswered(t *testing.T, a *running, group rl.Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for {
		_, err := a.Submit(ctx, encode(group))
		if err == nil {
			return
		}
		if IsFinal(err) || ctx.Err() != nil {
			t.Fatalf("Submit: %v", err)
		}
	}
}

// submitUntilTaken submits a group until the learner meant has taken it. The predecessor of that learner may rightly
// take the group until the worker has received an answer of the successor.
func submitUntilTaken(t *testing.T, a *running, group rl.Group, meant *learner) {
	t.Helper()
	end := time.After(deadline)
	for {
		submitUntilAnswered(t, a, group)
		select {
		case g := <-meant.submitted:
			if g.Key.Slot == group.Key.Slot {
				return
			}
		case <-end:
			t.Fatalf("the group of slot %d never came", group.Key.Slot)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestSupersededLearnerIsLeftAndFencedOnceItsSuccessorIsKnown(t *testing.T) {
	t.Parallel()
	old, successor := newLearner(), newLearner()
	superseded := serve(t, "", epochOf(1), old, Timing{Stream: 100 * time.Millisecond})
	name := pointingTo(superseded)
	config := clientConfig(t, "learner:7443")
	config.Dial = name.dial
	w := newWorker()
	a := runClient(t, config, w)
	take(t, "answer of the first learner", w.replies)

	s2 := serve(t, "", epochOf(2), successor, Timing{Stream: 100 * time.Millisecond})
	name.pointTo(s2)
	take(t, "Hello to the successor", successor.hellos)
	submitUntilTaken(t, a, exampleGroup(1, 2, 8), successor)

	// The name points back, as a stale DNS answer would.
	for len(old.hellos) > 0 {
		<-old.hellos
	}
	name.pointTo(superseded)
	if higher := take(t, "the notice of the fence", superseded.fenced); higher != 2 {
		t.Errorf("the superseded learner was fenced by attempt %d, want 2", higher)
	}
	if len(old.hellos) != 0 {
		t.Errorf("the superseded learner accepted a Hello: got %v, want none", old.hellos)
	}
	name.pointTo(s2)
	submitUntilTaken(t, a, exampleGroup(2, 2, 8), successor)
}

// forgetful is a learner that does not check epochs, because of a bug or as an adversary. A worker must not obey it.
type forgetful struct {
	pb.UnimplementedExchangeServer
	epoch *Epoch
}

func (f forgetful) Hello(context.Context, *pb.HelloRequest) (*pb.HelloReply, error) {
	return helloReplyToProto(f.epoch, HelloReply{CoveredIndex: 1 << 40}), nil
}

func (f forgetful) Renew(stream grpc.BidiStreamingServer[pb.RenewRequest, pb.RenewReply]) error {
	return stream.Send(directiveToProto(f.epoch, Directive{CoveredIndex: 1 << 40}))
}

func TestRepliesOfALowerAttemptAreRefused(t *testing.T) {
	t.Parallel()
	tls, err := credentialsOf(t, "uid-1").ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		epoch *Epoch
		want  error
	}{
		"a lower attempt": {epochOf(1), ErrFenced},
		"another run":     {&Epoch{RunUid: "uid-2", SpecDigest: "spec-1", Attempt: 9}, ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer(grpc.Creds(credentials.NewTLS(tls)))
			pb.RegisterExchangeServer(server, forgetful{epoch: tc.epoch})
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
			client, conn := dialled(t, listener.Addr().String())
			informOf(t, client, 2)
			w := newWorker()
			if _, err := client.hello(t.Context(), w); !errors.Is(err, tc.want) {
				t.Errorf("hello: %v, want %v", err, tc.want)
			}
			if err := client.renew(t.Context(), conn, w); !errors.Is(err, tc.want) {
				t.Errorf("renew: %v, want %v", err, tc.want)
			}
			if len(w.replies)+len(w.directives) != 0 {
				t.Errorf("the worker received something: got %v, want 0", len(w.replies)+len(w.directives))
			}
			if client.Attempt() != 2 {
				t.Errorf("the worker knows of attempt %d", client.Attempt())
			}
		})
	}
}

// silence is a connection whose far end can fall silent without closing, as a stopped process or a
// network that drops everything does.
type silence struct {
	net.Conn
	fallen <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Read returns nothing more once silence has fallen, not even the end, until this side closes.
func (s *silence) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	select {
	case <-s.fallen:
		<-s.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

// Close implements net.Conn.
func (s *silence) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

func TestASilentLearnerIsNoticedWithin20Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The certificate is valid from 2020 on, but the fake time begins in 2000.
		time.Sleep(21 * 365 * 24 * time.Hour)
		l, w := newLearner(), newWorker()
		listener := bufconn.Listen(1 << 20)
		server, err := NewServer(ServerConfig{Epoch: epochOf(1), Credentials: credentialsOf(t, "uid-1"), Handler: l})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = server.Serve(ctx, listener) }()
		fallen := make(chan struct{})
		dials := make(chan time.Time, 100)
		config := clientConfig(t, "learner")
		config.Renew = time.Hour
		config.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
			dials <- time.Now()
			conn, err := listener.DialContext(ctx)
			return &silence{Conn: conn, fallen: fallen, closed: make(chan struct{})}, err
		}
		a := runClient(t, config, w)
		<-dials
		<-w.replies
		<-w.directives
		time.Sleep(3 * time.Second)
		close(fallen)
		start := time.Now()
		if noticed := (<-dials).Sub(start); noticed > 21*time.Second {
			t.Errorf("the silence was noticed after %s", noticed)
		}
		a.stop()
		cancel()
		synctest.Wait()
	})
}
