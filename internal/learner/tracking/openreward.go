// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openreward"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

const (
	// maxUploads limits the requests at the same time, as in the package openreward.
	maxUploads = 32
	// lookupTimeout bounds the request for the id of an environment. Rollouts are sent even without the id.
	lookupTimeout = 10 * time.Second
	// maxLookups limits the lookups of an environment that the service does not return.
	maxLookups = 3
)

// openReward sends rollouts to OpenReward. The event that begins a rollout is sent alone. The messages of several
// rollouts are sent together once the service has accepted the events that begin them.
type openReward struct {
	service

	settings contracttracking.OpenReward
	// ids are the service's ids of environments, by deployment.
	ids map[openreward.Deployment]deploymentIDs
	// lookups counts requests for ids.
	lookups map[openreward.Deployment]int
}

type deploymentIDs struct{ environment, variant string }

func newOpenReward(settings contracttracking.OpenReward) *openReward {
	return &openReward{
		service: newService("tracking.openreward", settings.BaseURL), settings: settings,
		ids: map[openreward.Deployment]deploymentIDs{}, lookups: map[openreward.Deployment]int{},
	}
}

// authenticate reads the key.
func (o *openReward) authenticate() error {
	key, err := o.readKey(o.settings.KeyFile)
	o.authorize = func(r *http.Request) { r.Header.Set("X-Api-Key", key) }
	return err
}

// post sends events.
func (o *openReward) post(ctx context.Context, events any) error {
	return o.call(ctx, "/v1/rollouts", map[string]any{"events": events}, nil)
}

// lookUp returns the ids of an environment and of its variant; they are empty if the service does not return them.
func (o *openReward) lookUp(ctx context.Context, deployment openreward.Deployment) deploymentIDs {
	ids, known := o.ids[deployment]
	owner, name, hosted := strings.Cut(deployment.Name, "/")
	if known || !hosted || o.lookups[deployment] >= maxLookups {
		return ids
	}
	o.lookups[deployment]++
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	public := o.service
	public.authorize = func(*http.Request) {}
	path := "/v1/environments/" + url.PathEscape(owner) + "/" + url.PathEscape(name)
	type named struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	var environment named
	if public.get(ctx, path, nil, &environment) != nil {
		return ids
	}
	ids.environment = environment.ID
	if deployment.Variant != "" {
		var variants []named
		if public.get(ctx, path+"/variants", nil, &variants) != nil {
			return ids
		}
		for _, v := range variants {
			if v.Name == deployment.Variant {
				ids.variant = v.ID
			}
		}
	}
	o.ids[deployment] = ids
	return ids
}

// startState is the known state of the event that begins a rollout.
type startState int

const (
	notSent startState = iota
	accepted
	// refused means that no more events of the rollout are sent.
	refused
	// unknown means that the answer to the event did not arrive or did not come from the service.
	unknown
)

// progress is the progress of sending a step. It is recorded before each request, so that the next process does not
// repeat a request during which a process ended.
type progress struct {
	// First is the first of the rollouts that are sent together; the ones before it are done.
	First int `json:"first"`
	// Starts are the states of these rollouts.
	Starts []startState `json:"starts,omitempty"`
	// Messages is the number of their messages that were sent.
	Messages int `json:"messages,omitempty"`
}

// sending is a step that is sent.
type sending struct {
	uploads *Uploads

	batch    *waitingBatch
	progress *progress
}

// sendBatch sends the rest of a step.
func (u *Uploads) sendBatch(ctx context.Context, batch *waitingBatch) error {
	if batch.progress == nil {
		sent, err := u.readProgress(batch)
		if err != nil {
			return err
		}
		if sent {
			return u.setSent(batch)
		}
	}
	rollouts, err := u.read(batch)
	if err != nil {
		return err
	}
	s := sending{uploads: u, batch: batch, progress: batch.progress}
	for s.progress.First < len(rollouts) && u.isWaiting(batch) {
		together := rollouts[s.progress.First:min(s.progress.First+maxUploads, len(rollouts))]
		if err := s.sendTogether(ctx, together); err != nil {
			return err
		}
		*s.progress = progress{First: s.progress.First + len(together)}
	}
	return u.setSent(batch)
}

// setSent records that nothing of a step is left to be sent.
func (u *Uploads) setSent(batch *waitingBatch) error {
	if files := u.files(); files != nil {
		if err := files.SetSent(batch.key()); err != nil {
			return &serviceError{code: problem.ServiceFailing,
				message: "The artifact store does not record what is sent: it is tried again"}
		}
	}
	u.finish(batch)
	return nil
}

// readProgress reads an earlier attempt's progress in sending a step, and whether it sent all. Events whose outcome
// that attempt did not learn are not sent again.
func (u *Uploads) readProgress(batch *waitingBatch) (sent bool, err error) {
	found := &progress{}
	if files := u.files(); files != nil {
		if sent, err = files.IsSent(batch.key()); err == nil {
			err = files.Progress(batch.key(), found)
		}
		if err != nil {
			return false, &serviceError{code: problem.ServiceFailing,
				message: "The artifact store does not say which rollouts are sent: it is asked again"}
		}
	}
	for i, state := range found.Starts {
		if state == unknown {
			found.Starts[i] = refused
			batch.refused++
		}
	}
	batch.progress = found
	return sent, nil
}

// record makes progress durable.
func (s *sending) record(p progress) error {
	files := s.uploads.files()
	if files == nil {
		return nil
	}
	return files.SetProgress(s.batch.key(), p)
}

// sendTogether sends rollouts.
func (s *sending) sendTogether(ctx context.Context, rollouts []openreward.Rollout) error {
	if len(s.progress.Starts) != len(rollouts) {
		s.progress.Starts = make([]startState, len(rollouts))
	}
	for i := range rollouts {
		start := &rollouts[i].Start
		ids := s.uploads.service.lookUp(ctx, openreward.Deployment{Name: start.Environment, Variant: start.Variant})
		start.EnvironmentID, start.VariantID = ids.environment, ids.variant
	}
	if err := s.sendStarts(ctx, rollouts); err != nil {
		return err
	}
	var messages []openreward.MessageEvent
	for i, r := range rollouts {
		for _, message := range r.Messages {
			if message.EnvironmentID = r.Start.EnvironmentID; s.progress.Starts[i] == accepted {
				messages = append(messages, message)
			}
		}
	}
	return s.sendMessages(ctx, messages)
}

// sendStarts sends the events that begin the rollouts, each alone.
func (s *sending) sendStarts(ctx context.Context, rollouts []openreward.Rollout) error {
	intended := progress{First: s.progress.First, Starts: make([]startState, len(rollouts))}
	var left []int
	for i, state := range s.progress.Starts {
		if intended.Starts[i] = state; state == notSent || state == unknown {
			intended.Starts[i] = unknown
			left = append(left, i)
		}
	}
	if len(left) == 0 {
		return nil
	}
	if err := s.record(intended); err != nil {
		return err
	}
	failures := make([]error, len(rollouts))
	var requests sync.WaitGroup
	for _, i := range left {
		requests.Go(func() { failures[i] = s.uploads.service.post(ctx, []any{rollouts[i].Start}) })
	}
	requests.Wait()
	for _, i := range left {
		s.progress.Starts[i] = s.stateAfter(failures[i])
		if s.progress.Starts[i] == accepted || s.progress.Starts[i] == refused {
			failures[i] = nil
		}
	}
	if err := errors.Join(failures...); err != nil {
		return errors.Join(cmp.Or(failures...), s.record(*s.progress))
	}
	return nil
}

// stateAfter returns the state of an event after a request.
func (s *sending) stateAfter(err error) startState {
	p, _ := errors.AsType[*serviceError](err)
	switch {
	case err == nil:
		return accepted
	case p == nil || p.unknown:
		return unknown
	case p.isOfContent():
		s.refuse(err)
		return refused
	default:
		return notSent
	}
}

func (s *sending) refuse(err error) {
	s.batch.refused++
	s.uploads.logger.Warn("OpenReward refuses a rollout, which is left out", "step", s.batch.Step, "err", err)
}

// sendMessages sends messages in their order.
func (s *sending) sendMessages(ctx context.Context, messages []openreward.MessageEvent) error {
	for s.progress.Messages < len(messages) {
		events, err := openreward.First(messages[s.progress.Messages:])
		if err != nil {
			return err
		}
		intended := *s.progress
		intended.Messages += len(events)
		if err := s.record(intended); err != nil {
			return err
		}
		err = s.uploads.service.post(ctx, events)
		p, _ := errors.AsType[*serviceError](err)
		switch {
		case err == nil:
		case p != nil && p.isOfContent():
			s.refuse(err)
		case p != nil && !p.unknown:
			return errors.Join(err, s.record(*s.progress))
		default:
			return err
		}
		*s.progress = intended
	}
	return nil
}
