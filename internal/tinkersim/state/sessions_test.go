// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestSessionTimeout(t *testing.T) {
	cases := map[string]struct {
		use   func(f *fixture, session, model, sampler string) error
		alive bool // whether the session still exists 11 minutes after its creation and 6 after use
	}{
		"without any request": {func(*fixture, string, string, string) error { return nil }, false},
		"with a heartbeat": {func(f *fixture, session, _, _ string) error {
			_, err := f.Sessions.Heartbeat(tinker.SessionHeartbeat{Session: session})
			return err
		}, true},
		"with a request for a model": {func(f *fixture, _, model, _ string) error {
			_, err := f.Models.Info(tinker.ModelRequest{ModelID: model})
			return err
		}, true},
		"with a request for a sampler": {func(f *fixture, _, _, sampler string) error {
			_, err := f.Samplers.Info(sampler)
			return err
		}, true},
		"with a new sampler": {func(f *fixture, session, _, _ string) error {
			_, err := f.Samplers.Create(tinker.CreateSamplingSessionRequest{Session: session, Seq: 9, BaseModel: baseModel})
			return err
		}, true},
		"with a change of the project": {func(f *fixture, session, _, _ string) error {
			return f.Sessions.SetProject(session, "p")
		}, true},
		"with its end": {func(f *fixture, session, _, _ string) error { return f.Sessions.Finish(session) }, true},
		"with a look at it": {func(f *fixture, session, _, _ string) error {
			_, err := f.Sessions.Get(session)
			return err
		}, false},
		"with a list of all sessions": {func(f *fixture, _, _, _ string) error {
			f.Sessions.List()
			return nil
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			session := f.session()
			model := f.model(session, 0)
			sampler, err := f.Samplers.Create(tinker.CreateSamplingSessionRequest{Session: session, Seq: 1,
				BaseModel: baseModel})
			if err != nil {
				t.Fatal(err)
			}
			f.clock.advance(5 * time.Minute)
			if err := tc.use(f, session, model, sampler.SamplingSession); err != nil {
				t.Fatal(err)
			}
			f.clock.advance(6 * time.Minute)
			want := "not_found"
			if tc.alive {
				want = ""
			}
			_, sessionErr := f.Sessions.Get(session)
			_, modelErr := f.Models.Info(tinker.ModelRequest{ModelID: model})
			_, samplerErr := f.Samplers.Info(sampler.SamplingSession)
			for what, err := range map[string]error{"session": sessionErr, "model": modelErr, "sampler": samplerErr} {
				if got := category(err); got != want {
					t.Errorf("%s: error category %q, want %q", what, got, want)
				}
			}
		})
	}
}

func TestSessionTimeoutBoundary(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	f.clock.advance(10 * time.Minute)
	if _, err := f.Sessions.Get(session); err != nil {
		t.Errorf("after exactly the timeout: %v", err)
	}
	f.clock.advance(1)
	if _, err := f.Sessions.Get(session); category(err) != "not_found" {
		t.Errorf("after more than the timeout: %v, want not found", err)
	}
}

func TestSessionList(t *testing.T) {
	f := newFixture(t)
	if got := f.Sessions.List(); got == nil || len(got) != 0 {
		t.Errorf("List() without sessions = %#v, want an empty slice", got)
	}
	oldest := f.session()
	f.clock.advance(6 * time.Minute)
	middle := f.session()
	f.clock.advance(time.Second)
	newest := f.session()
	if diff := cmp.Diff([]string{newest, middle, oldest}, f.Sessions.List()); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	f.clock.advance(5 * time.Minute)
	last := f.session() // Create removes sessions that timed out
	if diff := cmp.Diff([]string{last, newest, middle}, f.Sessions.List()); diff != "" {
		t.Errorf("sessions after a timeout (-want +got):\n%s", diff)
	}
}

func TestSessionInfo(t *testing.T) {
	f := newFixture(t)
	created, err := f.Sessions.Create(tinker.CreateSessionRequest{UserMetadata: tinker.Metadata{"run": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	session := created.Session
	model := f.model(session, 3)
	sampler, err := f.Samplers.Create(tinker.CreateSamplingSessionRequest{Session: session, Seq: 7, BaseModel: baseModel})
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Sessions.Get(session)
	if err != nil {
		t.Fatal(err)
	}
	want := SessionInfo{
		SessionInfo: tinker.SessionInfo{TrainingRunIDs: []string{session + ":train:3"},
			SamplerIDs: []string{session + ":sample:7"}},
		UserMetadata: tinker.Metadata{"run": "a"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	if model != want.TrainingRunIDs[0] || sampler.SamplingSession != want.SamplerIDs[0] {
		t.Errorf("ids %s and %s", model, sampler.SamplingSession)
	}
}

func TestSessionFinish(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	model := f.model(session, 0)
	if err := f.Sessions.Finish(session); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Sessions.Heartbeat(tinker.SessionHeartbeat{Session: session}); category(err) != string(
		tinker.CategoryFutureLost) {
		t.Errorf("a heartbeat of a finished session: %v", err)
	}
	if _, err := f.Models.Info(tinker.ModelRequest{ModelID: model}); err != nil {
		t.Errorf("a model of a finished session: %v", err)
	}
}

func TestSessionExpire(t *testing.T) {
	f := newFixture(t)
	kept, expired := f.session(), f.session()
	keptModel, expiredModel := f.model(kept, 0), f.model(expired, 0)
	if err := f.Sessions.Expire(expired); err != nil {
		t.Fatal(err)
	}
	if err := f.Sessions.Expire(expired); category(err) != "not_found" {
		t.Errorf("Expire again: %v, want not found", err)
	}
	if _, err := f.Models.Info(tinker.ModelRequest{ModelID: expiredModel}); category(err) != "not_found" {
		t.Errorf("a model of the expired session: %v, want not found", err)
	}
	if _, err := f.Models.Info(tinker.ModelRequest{ModelID: keptModel}); err != nil {
		t.Errorf("a model of the other session: %v", err)
	}
}

func TestSessionProject(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	before := f.model(session, 0)
	if err := f.Sessions.SetProject(session, "p"); err != nil {
		t.Fatal(err)
	}
	after := f.model(session, 1)
	for project, want := range map[string][]string{"": {before, after}, "p": {after}, "q": nil} {
		var got []string
		for _, run := range f.Checkpoints.Runs(project) {
			got = append(got, run.TrainingRunID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("runs of project %q (-want +got):\n%s", project, diff)
		}
	}
}

func TestUnknownSession(t *testing.T) {
	f := newFixture(t)
	cases := map[string]func() error{
		"heartbeat": func() error {
			_, err := f.Sessions.Heartbeat(tinker.SessionHeartbeat{Session: "x"})
			return err
		},
		"info":    func() error { _, err := f.Sessions.Get("x"); return err },
		"project": func() error { return f.Sessions.SetProject("x", "p") },
		"finish":  func() error { return f.Sessions.Finish("x") },
		"model":   func() error { _, err := f.Models.Create(modelRequest("x", 0)); return err },
		"sampler": func() error {
			_, err := f.Samplers.Create(tinker.CreateSamplingSessionRequest{Session: "x", BaseModel: baseModel})
			return err
		},
	}
	for name, do := range cases {
		t.Run(name, func(t *testing.T) {
			if err := do(); category(err) != "not_found" {
				t.Errorf("got %v, want not found", err)
			}
		})
	}
}
