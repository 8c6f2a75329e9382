// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"crypto/sha256"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// TestRestart checks the state that a restart forgets and keeps, in the same process and in another.
func TestRestart(t *testing.T) {
	cases := map[string]func(b *backend) *backend{
		"in place": func(b *backend) *backend {
			if err := b.sim.Restart(); err != nil {
				b.t.Fatal(err)
			}
			return b
		},
		"by an admin": func(b *backend) *backend {
			b.admin(http.MethodPost, "/admin/restart", "")
			return b
		},
		"as another process": func(b *backend) *backend {
			b.sim.Close()
			return start(b.t, tinkersim.Options{Dir: b.dir, Clock: newClock().Now})
		},
	}
	for name, restart := range cases {
		t.Run(name, func(t *testing.T) {
			b, session, model := startTrained(t, tinkersim.Options{})
			sampler := b.samplingSession(session, model, 0)
			open := b.submit("forward_backward", chunk(t, model, 9, "behind a gap"))
			kept := b.submit("optim_step", optim(model, 2))
			archive := b.unpack("tinker://" + model + "/weights/one")["adapter_model.bin"]
			samples := b.submit("asample", asample(sampler, 1, 7, "Q:", 1, 9))
			want := b.drawn(samples).Sequences[0].Tokens

			b = restart(b)
			for _, id := range []string{open, kept, samples} {
				b.post(http.StatusNotFound, "retrieve_future", `{"request_id":"`+id+`"}`)
			}
			b.post(http.StatusNotFound, "optim_step", optim(model, 5))
			b.post(http.StatusNotFound, "session_heartbeat", fill(`{"session_id":"S"}`, "S", session))
			b.post(http.StatusNotFound, "asample", asample(sampler, 2, 7, "Q:", 1, 9))
			run, err := b.client().TrainingRun(t.Context(), model)
			if err != nil || run.UserMetadata["run"] != "abc" || run.LastCheckpoint == nil {
				t.Errorf("the run after the restart: %+v, %v", run, err)
			}

			again := b.newSession()
			if again == session {
				t.Errorf("a session id was reused: got %v for both", again)
			}
			next := b.newModel(again, 0)
			id := b.submit("load_weights", fill(`{"model_id":"M","seq_id":1,"path":"P","optimizer":true}`, "M", next, "P",
				"tinker://"+model+"/weights/one"))
			for _, old := range []string{open, kept, samples} {
				if id == old {
					t.Errorf("request id %s was reused", id)
				}
			}
			b.result(id)
			if loaded := b.adapter(next, 2, "one"); loaded != archive {
				t.Errorf("the state that was loaded has sha256 %x, want %x as saved", sha256.Sum256([]byte(loaded)),
					sha256.Sum256([]byte(archive)))
			}
			got := b.drawn(b.submit("asample", asample(b.samplingSession(again, model, 0), 1, 7, "Q:", 1,
				9))).Sequences[0].Tokens
			if len(got) != len(want) || got[0] != want[0] {
				t.Errorf("samples after the restart %v, before %v", got, want)
			}
		})
	}
}

func TestRestartInterruptsASave(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{})
	b.admin(http.MethodPost, "/admin/faults", `{"faults":[{"op":"save_weights","do":"hold"}]}`)
	b.submit("save_weights", fill(`{"model_id":"M","path":"cut","seq_id":5}`, "M", model))
	b.sim.Close()
	half := filepath.Join(b.dir, "tinkersim-runs", strings.ReplaceAll(model, ":", "_"), "weights",
		"cut.0123456789abcdef.bin")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := start(t, tinkersim.Options{Dir: b.dir, Clock: newClock().Now})
	if list, err := again.client().RunCheckpoints(t.Context(), model); err != nil || len(list) != 2 {
		t.Errorf("%d checkpoints, %v, want the 2 of before", len(list), err)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("the file of the save still exists: %v", err)
	}
}

func TestPollsEndAtClose(t *testing.T) {
	b, _, model := startTrained(t, tinkersim.Options{PollPatience: time.Hour})
	id := b.submit("forward_backward", chunk(t, model, 9, "behind a gap"))
	status := make(chan int)
	go func() {
		answer, err := b.call(http.MethodPost, "/api/v1/retrieve_future", `{"request_id":"`+id+`"}`)
		if err != nil {
			t.Error(err)
		}
		status <- answer.status
	}()
	eventually(t, "a poll arrives", func() bool { return b.sim.Stats().Calls["retrieve_future"] >= 6 })
	b.sim.Close()
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", got)
	}
	b.post(http.StatusServiceUnavailable, "create_model", `{"session_id":"x","model_seq_id":0}`)
}

func TestCheckpointExpiry(t *testing.T) {
	c := newClock()
	b, session, model := startTrained(t, tinkersim.Options{Clock: c.Now, SessionTimeout: 24 * time.Hour})
	sampler := b.samplingSession(session, model, 0)
	paths := func() int {
		n := 0
		for _, err := range b.client().Checkpoints(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if err := b.client().SetTTL(t.Context(), "tinker://"+model+"/weights/one", new(int64(7200))); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour - time.Second)
	if n := paths(); n != 2 {
		t.Errorf("%d checkpoints before the hour is over, want 2", n)
	}
	b.drawn(b.submit("asample", asample(sampler, 1, 7, "Q:", 1, 2)))
	c.advance(time.Second)
	if n := paths(); n != 1 {
		t.Errorf("%d checkpoints after an hour, want 1", n)
	}
	b.post(http.StatusNotFound, "asample", asample(sampler, 2, 7, "Q:", 1, 2))
	c.advance(time.Hour)
	if n := paths(); n != 0 {
		t.Errorf("%d checkpoints after two hours, want 0", n)
	}
	b.post(http.StatusNotFound, "weights_info", fill(`{"tinker_path":"tinker://{M}/weights/one"}`, "M", model))
	b.do("save_weights", fill(`{"model_id":"M","path":"one","seq_id":5}`, "M", model)) // the name can be used again
	if n := paths(); n != 1 {
		t.Errorf("%d checkpoints, want the new one", n)
	}
}

func TestSessionTimeout(t *testing.T) {
	c := newClock()
	b, session, model := startTrained(t, tinkersim.Options{Clock: c.Now, SessionTimeout: 5 * time.Minute})
	heartbeat := fill(`{"session_id":"S"}`, "S", session)
	sampler := b.samplingSession(session, model, 0)
	uses := []func(){
		func() { b.post(http.StatusOK, "session_heartbeat", heartbeat) },
		func() { b.post(http.StatusOK, "get_info", fill(`{"model_id":"M"}`, "M", model)) },
		func() { b.submit("asample", asample(sampler, 1, 7, "Q:", 1, 2)) },
	}
	for _, use := range uses { // each keeps the session alive for another five minutes
		c.advance(5 * time.Minute)
		use()
	}
	held := b.submit("forward_backward", chunk(t, model, 9, "behind a gap"))
	c.advance(5*time.Minute + time.Second)
	b.post(http.StatusNotFound, "session_heartbeat", heartbeat)
	b.post(http.StatusNotFound, "optim_step", optim(model, 10))
	b.post(http.StatusNotFound, "asample", asample(sampler, 2, 7, "Q:", 1, 2))
	sameJSON(t, `{"error":"carrying out the operation: the model was removed","category":"server"}`, b.result(held).body)
	if list, err := b.client().RunCheckpoints(t.Context(), model); err != nil || len(list) != 2 {
		t.Errorf("%d checkpoints, %v: they do not belong to the session", len(list), err)
	}
}

func TestAdminExpireSession(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	b.admin(http.MethodDelete, "/admin/sessions/"+session, "")
	b.post(http.StatusNotFound, "session_heartbeat", fill(`{"session_id":"S"}`, "S", session))
	b.post(http.StatusNotFound, "optim_step", optim(model, 5))
}

func TestFinishedSessionHeartbeat(t *testing.T) {
	b, session, _ := startTrained(t, tinkersim.Options{})
	b.post(http.StatusNoContent, "sessions/"+session+"/finish", `{"reason":{"type":"success"}}`)
	b.post(http.StatusGone, "session_heartbeat", fill(`{"session_id":"S"}`, "S", session))
}

func TestListings(t *testing.T) {
	b := start(t, tinkersim.Options{})
	c := b.client()
	first, second := b.session(c), b.session(c)
	want := map[string]bool{}
	for seq, session := range []string{first, second, second} {
		m := b.model(c, session, seq)
		saving, err := m.SaveState(t.Context(), client.SaveRequest{Name: "s", TTLSeconds: 3600})
		want[done(t, saving, err).Path] = true
	}
	for checkpoint, err := range c.Checkpoints(t.Context()) {
		if err != nil || !want[checkpoint.TinkerPath] || checkpoint.ExpiresAt == nil {
			t.Errorf("listed %+v, %v", checkpoint, err)
		}
		delete(want, checkpoint.TinkerPath)
	}
	if len(want) != 0 {
		t.Errorf("not listed: %v", want)
	}
	runs := 0
	for run, err := range c.TrainingRuns(t.Context()) {
		if err != nil || run.UserMetadata["run"] != "abc" || run.UserMetadata["attempt"] != "1" {
			t.Errorf("run %+v, %v", run, err)
		}
		runs++
	}
	if runs != 3 {
		t.Errorf("%d runs, want 3", runs)
	}
}
