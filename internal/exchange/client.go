// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// ClientConfig configures a Client.
type ClientConfig struct {
	// Address of the learner, host:port by the Service's name.
	Address            string
	Credentials        contract.Credentials
	RunUID, SpecDigest string
	// Version is the version of the run (contract.RunFile.Version). Defaults to contract.FormatVersion.
	Version int
	// Worker is the worker's unique name, which is stable as long as the process runs.
	Worker string
	// Spent returns the usage of the worker's requests to the endpoint; nil for a worker that does not count them.
	Spent func() Spent
	// Logger may be nil.
	Logger *slog.Logger
	// Renew is the interval at which leases are renewed. Defaults to 2 s.
	Renew time.Duration
	// Dial replaces TCP, in tests.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

const (
	renewEvery = 2 * time.Second
	// acquireTimeout is longer than a learner waits.
	acquireTimeout = 40 * time.Second
	callTimeout    = 20 * time.Second
	dialTimeout    = 5 * time.Second
)

// Client is a worker's side of the exchange. Run has to be called; the other methods may be called concurrently, wait
// until Run has said Hello to a learner, and fail with one of the errors of this package or ctx's. After an error
// that is not final they can be called again at once, since Run backs off.
type Client struct {
	config      ClientConfig
	credentials credentials.TransportCredentials

	mu sync.Mutex
	// attempt is the highest known attempt of a learner.
	attempt int32
	// proof is the proof of that attempt's learner.
	proof []byte
	// current is the connection on which Hello was said, or nil.
	current *connection
	closed  bool
	// changes is notified when current changes.
	changes wait.Signal
}

// NewClient reads the run's certificate and prepares a client. It does not dial.
func NewClient(config ClientConfig) (*Client, error) {
	tls, err := config.Credentials.ClientTLS()
	if err != nil {
		return nil, fmt.Errorf("preparing the exchange: %w", err)
	}
	if config.Worker == "" {
		return nil, errors.New("preparing the exchange: the worker has no name")
	}
	config.Renew = cmp.Or(config.Renew, renewEvery)
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if config.Dial == nil {
		dialer := &net.Dialer{Timeout: dialTimeout}
		config.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	config.Version = cmp.Or(config.Version, contract.FormatVersion)
	return &Client{config: config, credentials: credentials.NewTLS(tls)}, nil
}

// Acquire waits for leases for at most free episodes. After 20 s it returns none.
func (c *Client) Acquire(ctx context.Context, free int) ([]Lease, error) {
	var leases []Lease
	err := c.call(ctx, acquireTimeout, func(ctx context.Context, api pb.ExchangeClient) error {
		reply, err := api.Acquire(ctx, &pb.AcquireRequest{
			Epoch: c.epoch(), Worker: c.config.Worker, Free: int32(min(free, 1<<30))})
		if err != nil {
			return err
		}
		var d decoder
		leases = each("leases", reply.GetLeases(), d.lease)
		return protocolError(d.err)
	})
	if err != nil {
		return nil, fmt.Errorf("acquiring leases: %w", err)
	}
	return leases, nil
}

// Submit sends a finished group or tombstone.
func (c *Client) Submit(ctx context.Context, group EncodedGroup) (*SubmitReply, error) {
	var reply *SubmitReply
	err := c.call(ctx, submitTimeout(len(group.Message)), func(ctx context.Context, api pb.ExchangeClient) error {
		stream, err := api.Submit(ctx)
		if err != nil {
			return err
		}
		header := &pb.SubmitHeader{
			Epoch: c.epoch(), Worker: c.config.Worker, Key: keyToProto(group.Key), Digest: group.Digest.String(),
			Spent: c.spent(),
		}
		// A send that fails ends the stream; the reply has the reason.
		_ = sendFrames(header, group.Message, stream.Send)
		if reply, err = stream.CloseAndRecv(); err != nil {
			return err
		}
		return protocolError(checkStatus(reply))
	})
	if err != nil {
		return nil, fmt.Errorf("submitting slot %d: %w", group.Key.Slot, err)
	}
	return reply, nil
}

// submitTimeout allows for a slow network: a mebibyte in 5 s.
func submitTimeout(bytes int) time.Duration {
	return callTimeout + time.Duration(bytes>>20)*5*time.Second
}

// Release releases leases without a group. The reason is Drained, PolicyMissing, EnvironmentDown, NotPlayed or
// SamplesUnanswered; with the last of these, the worker keeps the leases.
func (c *Client) Release(ctx context.Context, keys []rl.Key, reason string) error {
	err := c.call(ctx, callTimeout, func(ctx context.Context, api pb.ExchangeClient) error {
		_, err := api.Release(ctx, &pb.ReleaseRequest{
			Epoch: c.epoch(), Worker: c.config.Worker, Keys: all(keys, keyToProto), Reason: reason,
			Spent: c.spent()})
		return err
	})
	if err != nil {
		return fmt.Errorf("releasing leases: %w", err)
	}
	return nil
}

// Attempt returns the highest known attempt of a learner, which is 0 at first.
func (c *Client) Attempt() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempt
}

// Close ends every call and connection. It is called after Run has ended.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.setCurrent(nil)
	return nil
}

// call waits for a connection on which Hello was said, and makes one call on it. A connection on which a call failed
// is dropped, so that the next call waits for a new one.
func (c *Client) call(ctx context.Context, timeout time.Duration,
	f func(context.Context, pb.ExchangeClient) error) error {
	conn, err := c.await(ctx)
	if err != nil {
		return err
	}
	defer conn.release()
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = clientError(ctx, f(bounded, conn.api))
	if err != nil && ctx.Err() == nil {
		conn.fail(err)
		c.dropCurrent(conn)
	}
	return err
}

// await waits for a connection and retains it; the caller releases it.
func (c *Client) await(ctx context.Context) (*connection, error) {
	conn, err := wait.For(ctx, &c.changes, func() (conn *connection, ok bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.current != nil {
			c.current.retain()
		}
		return c.current, c.current != nil || c.closed
	})
	if err == nil && conn == nil {
		return nil, fmt.Errorf("%w: the client is closed", ErrUnreachable)
	}
	return conn, err
}

// setCurrent makes conn the current connection. The connection before it closes after its last call.
func (c *Client) setCurrent(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == conn && conn != nil {
		return
	}
	if c.current != nil {
		c.current.release()
	}
	c.current = conn
	c.changes.Notify()
}

// dropCurrent releases conn, if it is the current connection.
func (c *Client) dropCurrent(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != conn {
		return
	}
	c.current.release()
	c.current = nil
}

// epoch returns the epoch of the run with the highest attempt that the client knows of.
func (c *Client) epoch() *Epoch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Epoch{RunUid: c.config.RunUID, SpecDigest: c.config.SpecDigest, Attempt: c.attempt, Proof: c.proof,
		Version: int32(c.config.Version)}
}

// observeEpoch checks and notes the epoch of a reply. It refuses a reply of a lower attempt than the highest known
// one.
func (c *Client) observeEpoch(reply any) error {
	addressed, ok := reply.(interface{ GetEpoch() *pb.Epoch })
	if !ok {
		return nil
	}
	epoch := addressed.GetEpoch()
	if epoch.GetRunUid() != c.config.RunUID {
		return ErrForeign
	}
	if err := contract.CheckRunVersion("the learner's message", int(epoch.GetVersion()), c.config.Version); err != nil {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	if epoch.GetSpecDigest() != c.config.SpecDigest {
		return ErrForeign
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch.GetAttempt() < c.attempt {
		return fmt.Errorf("%w: attempt %d answers, attempt %d is known of", ErrFenced, epoch.GetAttempt(), c.attempt)
	}
	c.attempt, c.proof = epoch.GetAttempt(), epoch.GetProof()
	return nil
}

// unary checks the epoch of every reply.
func (c *Client) unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if err := invoke(ctx, method, request, reply, conn, options...); err != nil {
		return err
	}
	return c.observeEpoch(reply)
}

// stream checks the epoch of every message that comes.
func (c *Client) stream(ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, description, conn, method, options...)
	if err != nil {
		return nil, err
	}
	return &observingStream{ClientStream: stream, client: c}, nil
}

// observingStream checks the epoch of every message that comes.
type observingStream struct {
	grpc.ClientStream
	client *Client
}

// RecvMsg implements grpc.ClientStream.
func (s *observingStream) RecvMsg(message any) error {
	if err := s.ClientStream.RecvMsg(message); err != nil {
		return err
	}
	return s.client.observeEpoch(message)
}

func protocolError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrProtocol, err)
}
