// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tinker-operator/tinker-operator/internal/broker/checks"
	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/broker/share"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Config is the configuration with which a broker begins. Update replaces the fields of Settings.
type Config struct {
	// Endpoint is the name of the endpoint, for messages.
	Endpoint string
	// BaseURL is the address of the server, without /api/v1, and APIKey the key that the server accepts.
	BaseURL, APIKey string
	// TokenKey is the key of contract.DeriveEndpointKey, from which the tokens of runs are derived.
	TokenKey []byte
	// Dir is the folder with the records of owners and of checks. One broker at a time may use it.
	Dir string
	// Namespace is the operator's namespace. The usage of checks is ascribed to it.
	Namespace string
	// ClientVersion is the version of the program, which says with which client the server was checked.
	ClientVersion string
	// Models are the base models that runs may use; all if there are none.
	Models []string
	// Readable are checkpoints that runs may use besides the checkpoints of their namespace.
	Readable []Readable
	// Publication says that runs may publish their own checkpoints.
	Publication bool
	// Project is the project of the sessions, or empty.
	Project string
	// HTTP sends the requests; nil means a client that holds thousands of idle long polls.
	HTTP *http.Client
	// Lease returns why the broker may no longer admit requests and record owners, or nil if it may. A nil Lease lasts
	// for ever.
	Lease func() error
	// Meter counts the billed tokens, and Gate shares the server's limits. Either may be nil. The broker closes neither.
	Meter *meter.Meter
	Gate  *share.Gate
	// Observe is called with each answer, and must return at once. It may be nil.
	Observe func(Answer)
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

// Run is a run whose token the broker accepts.
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
	config Config
	owners *owners
	bodies *semaphore.Weighted
	// held limits a body that is held: maxHeld, or less in tests. bodyBytes is how much of bodies is acquired.
	held      int64
	bodyBytes atomic.Int64
	// patience is how long a client may take to send a body that is held: bodyPatience, or less in tests.
	patience time.Duration
	// drained is canceled by Drain.
	drained context.Context
	drain   func()
	// inForce has the settings that Update replaces, and updating is held while it replaces them.
	inForce  atomic.Pointer[inForce]
	updating sync.Mutex
	runs     atomic.Pointer[map[[sha256.Size]byte]Run]
	// refused and unreachable are the last failures at the server; nil if there was none, or a success followed.
	refused     atomic.Pointer[string]
	unreachable atomic.Pointer[outage]
	// checks has the supported features of the server. The requests of a check pass by loop.
	checks *checks.Checks
	loop   *loop
}

// Open returns a broker that knows the owners recorded in its folder, but no run yet.
func Open(config Config) (*Broker, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Observe == nil {
		config.Observe = func(Answer) {}
	}
	if config.Lease == nil {
		config.Lease = func() error { return nil }
	}
	known, err := openOwners(config.Dir, config.Now)
	if err != nil {
		return nil, fmt.Errorf("opening broker: %w", err)
	}
	b := &Broker{
		config: config, owners: known, bodies: semaphore.NewWeighted(maxBodies), held: maxHeld,
		patience: bodyPatience,
	}
	b.drained, b.drain = context.WithCancel(context.Background())
	err = b.Update(Settings{BaseURL: config.BaseURL, APIKey: config.APIKey, TokenKey: config.TokenKey,
		Models: config.Models, Readable: config.Readable,
		Publication: config.Publication, Project: config.Project, HTTP: config.HTTP})
	if err == nil {
		err = b.openChecks()
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("opening broker: %w", err)
	}
	return b, nil
}

// runOf returns the run that a token authorizes. Tokens are looked up by their digest, so that the time of a lookup
// reveals nothing about them.
func (b *Broker) runOf(token string) (Run, bool) {
	run, ok := (*b.runs.Load())[sha256.Sum256([]byte(token))]
	return run, ok
}

// Sweep forgets futures after a day, and the sessions of runs that are not named any more. It is called now and then.
func (b *Broker) Sweep() {
	named := map[Owner]bool{}
	for _, run := range *b.runs.Load() {
		named[run.Owner] = true
		if run.Former != "" {
			named[Owner{UID: run.Former, Namespace: run.Namespace}] = true
		}
	}
	b.owners.sweep(func(owner Owner) bool { return named[owner] })
}

// Drain makes the broker answer long polls with try_again and refuse all other requests, until the process ends.
func (b *Broker) Drain() { b.drain() }

func (b *Broker) isDraining() bool { return b.drained.Err() != nil }

// Close ends checks and the recording of owners. Requests in progress should have ended.
func (b *Broker) Close() {
	b.closeChecks()
	b.owners.journal.Close()
}

// Failed returns why the broker can record nothing, or nil. A broker that failed has to be opened anew.
func (b *Broker) Failed() error {
	if err := b.owners.journal.Err(); err != nil || b.config.Meter == nil {
		return err
	}
	return b.config.Meter.Err()
}

// The metadata keys of sessions and models that the broker alone writes, never a run.
const (
	MetadataRun       = "tinker-operator.dev/run"
	MetadataNamespace = "tinker-operator.dev/namespace"
)

// IsEmpty reports whether no session and no model is recorded, as after the loss of the records.
func (b *Broker) IsEmpty() bool { return b.owners.isEmpty() }

// Restore records the owners of models from the metadata that an earlier broker wrote, and returns how many it found.
// Sessions and results are not restored: runs open new sessions.
func (b *Broker) Restore(ctx context.Context) (int, error) {
	var found []record
	for made, err := range b.inForce.Load().client.TrainingRuns(ctx) {
		if err != nil {
			return 0, fmt.Errorf("restoring owners: %w", err)
		}
		owner := Owner{UID: made.UserMetadata[MetadataRun], Namespace: made.UserMetadata[MetadataNamespace]}
		if owner.UID != "" {
			found = append(found, record{Kind: model, ID: made.TrainingRunID, Owner: owner, Base: made.BaseModel,
				Made: made.LastRequestTime.Unix()})
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
	return slices.ContainsFunc(b.inForce.Load().Readable, func(r Readable) bool {
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
	models := b.inForce.Load().Models
	return len(models) == 0 || slices.Contains(models, name)
}
