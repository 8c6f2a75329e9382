// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// Config names the server of a broker, and the runs that it serves.
type Config struct {
	// Endpoint is the name of the endpoint, for messages.
	Endpoint string
	// BaseURL is the address of the server, without /api/v1, and APIKey the key that the server accepts.
	BaseURL, APIKey string
	// TokenKey is the key of contract.DeriveEndpointKey, from which the tokens of runs are derived.
	TokenKey []byte
	// Dir is the folder with the records of owners. One broker at a time may use it.
	Dir string
	// Models are the base models that runs may use; all if there are none.
	Models []string
	// Readable are checkpoints that runs may use besides the checkpoints of their namespace.
	Readable []Readable
	// Project is the project of the sessions, or empty.
	Project string
	// HTTP sends the requests; nil means a client that holds thousands of idle long polls.
	HTTP *http.Client
	// Logger receives the refusals of the server; nil discards them.
	Logger *slog.Logger
	// Now is the clock; nil for the real one.
	Now func() time.Time
}

// Readable permits the runs of some namespaces to load, sample and inspect some checkpoints.
type Readable struct {
	Namespaces []string
	// Checkpoints are paths: tinker://RUN/KIND/NAME.
	Checkpoints []string
}

// Run is a run whose token counts.
type Run struct {
	Owner
	// Former is the UID of a deleted run whose objects count as the run's own, or empty.
	Former string
}

// owns reports whether an object of an owner counts as the run's own.
func (r Run) owns(of Owner) bool {
	return of.Namespace == r.Namespace && (of.UID == r.UID || r.Former != "" && of.UID == r.Former)
}

// Broker is the handler that passes requests on. It is safe for concurrent use.
type Broker struct {
	config  Config
	client  *client.Client
	http    *http.Client
	base    string
	owners  *owners
	bodies  *semaphore.Weighted
	drained chan struct{}
	drain   func()
	runs    atomic.Pointer[map[[sha256.Size]byte]Run]
	refused atomic.Pointer[string]
}

// Open returns a broker that knows the owners that its folder records, and as yet no run.
func Open(config Config) (*Broker, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if len(config.TokenKey) < sha256.Size {
		return nil, errors.New("opening broker: the key of the tokens is too short")
	}
	if config.HTTP == nil {
		plain, err := transport.New(transport.Options{})
		if err != nil {
			return nil, fmt.Errorf("opening broker: %w", err)
		}
		config.HTTP = &http.Client{Transport: plain}
	}
	upstream, err := client.New(client.Config{
		BaseURL: config.BaseURL, APIKey: config.APIKey, UserAgent: "tinker-operator-broker", HTTP: config.HTTP,
		Logger: config.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("opening broker: %w", err)
	}
	known, err := openOwners(config.Dir, config.Now)
	if err != nil {
		return nil, fmt.Errorf("opening broker: %w", err)
	}
	sender := *config.HTTP
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b := &Broker{
		config: config, client: upstream, http: &sender, base: trimBase(config.BaseURL), owners: known,
		bodies: semaphore.NewWeighted(maxBodies), drained: make(chan struct{}),
	}
	b.drain = sync.OnceFunc(func() { close(b.drained) })
	b.SetRuns(nil)
	return b, nil
}

// SetRuns says which runs there are. The tokens of others do not count any more.
func (b *Broker) SetRuns(runs []Run) {
	byToken := make(map[[sha256.Size]byte]Run, len(runs))
	for _, run := range runs {
		byToken[sha256.Sum256([]byte(contract.RunToken(b.config.TokenKey, run.UID)))] = run
	}
	b.runs.Store(&byToken)
}

// runOf returns the run that a token authorizes. Tokens are found by their digest, so that the time that it takes says
// nothing of them.
func (b *Broker) runOf(token string) (Run, bool) {
	run, ok := (*b.runs.Load())[sha256.Sum256([]byte(token))]
	return run, ok
}

// Drain answers long polls with try_again, and refuses all else, until the process ends.
func (b *Broker) Drain() { b.drain() }

func (b *Broker) isDraining() bool {
	select {
	case <-b.drained:
		return true
	default:
		return false
	}
}

// Close ends the recording of owners. Requests in progress should have ended.
func (b *Broker) Close() { b.owners.journal.close() }

// Failed returns why the broker can record no owners, or nil. A broker that failed has to be opened anew.
func (b *Broker) Failed() error { return b.owners.journal.error() }

// KeyRefused returns the server's message when it last refused the API key, or "" if it accepted the key since.
func (b *Broker) KeyRefused() string {
	if message := b.refused.Load(); message != nil {
		return *message
	}
	return ""
}

// The keys of the metadata of sessions and models that the broker writes, and no run.
const (
	MetadataRun       = "tinker-operator.dev/run"
	MetadataNamespace = "tinker-operator.dev/namespace"
)

// IsEmpty reports whether nothing is recorded, as after the loss of the records.
func (b *Broker) IsEmpty() bool { return b.owners.isEmpty() }

// Restore records the owners of models by the metadata that an earlier broker wrote, and returns how many it found.
// Sessions and results are not restored: runs open others.
func (b *Broker) Restore(ctx context.Context) (int, error) {
	var found []record
	for made, err := range b.client.TrainingRuns(ctx) {
		if err != nil {
			return 0, fmt.Errorf("restoring owners: %w", err)
		}
		owner := Owner{UID: made.UserMetadata[MetadataRun], Namespace: made.UserMetadata[MetadataNamespace]}
		if owner.UID != "" {
			found = append(found, record{Kind: model, ID: made.TrainingRunID, Owner: owner, Made: made.LastRequestTime.Unix()})
		}
	}
	if len(found) == 0 {
		return 0, nil
	}
	return len(found), b.owners.add(ctx, found...)
}

// mayRead reports whether a run may load, sample and inspect a checkpoint.
func (b *Broker) mayRead(run Run, path string) bool {
	parsed, err := tinker.ParsePath(path)
	if err != nil {
		return false
	}
	if made, ok := b.owners.get(model, parsed.Run); ok && made.Namespace == run.Namespace {
		return true
	}
	return slices.ContainsFunc(b.config.Readable, func(r Readable) bool {
		return slices.Contains(r.Namespaces, run.Namespace) && slices.Contains(r.Checkpoints, path)
	})
}

// own returns nil if an object is the run's own.
func (b *Broker) own(run Run, of kind, id string) error {
	if made, ok := b.owners.get(of, id); !ok || !run.owns(made.Owner) {
		return notFound(of, id)
	}
	return nil
}

// mayUseModel reports whether the endpoint permits a base model.
func (b *Broker) mayUseModel(name string) bool {
	return len(b.config.Models) == 0 || slices.Contains(b.config.Models, name)
}
