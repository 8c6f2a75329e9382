// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package dialects

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "record the requests of the clients as the test data of the codecs")

// data is the file of recorded requests that the codecs' tests read.
const data = "../../internal/gateway/dialect/testdata/requests.json"

// recording is the test data: the requests of named versions of the clients, and all options that these have.
type recording struct {
	Versions map[string]string   `json:"versions"`
	Options  map[string][]string `json:"options"`
	Requests []recorded          `json:"requests"`
}

// TestOfficialClients checks how the newest clients read canned replies, and compares their requests with the recorded
// ones.
func TestOfficialClients(t *testing.T) {
	s, public := run(t, "dialects", "--options")
	var now recording
	if err := json.Unmarshal(public, &now); err != nil {
		t.Fatal(err)
	}
	now.Requests = distinct(s.requests)
	compareRecording(t, now)
}

// TestOlderClients checks how older clients read canned replies.
func TestOlderClients(t *testing.T) { run(t, "dialects-oldest") }

// run runs clients.py with the clients of a requirements file against a server of its own.
func run(t *testing.T, requirements string, arguments ...string) (*server, []byte) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../conformance/venv", requirements).Output()
	if err != nil {
		t.Fatalf("making the virtual environment: %v", err)
	}
	s := &server{t: t, attempts: map[string]int{}}
	web := httptest.NewServer(s)
	defer web.Close()
	python := strings.TrimSpace(string(out)) + "/bin/python"
	var public, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, append([]string{"clients.py", web.URL}, arguments...)...)
	cmd.Stdout, cmd.Stderr = &public, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("clients.py: %v\n%s", err, log.Bytes())
	}
	t.Logf("%s", log.Bytes())
	for name, want := range map[string]int{"retry/quota": 1, "retry/rate": 3, "retry/overloaded": 3} {
		for _, client := range []string{"openai", "anthropic"} {
			if got := s.attempts[client+"/"+name]; got != want {
				t.Errorf("%s: got %d attempts of %s, want %d", name, got, client, want)
			}
		}
	}
	return s, public.Bytes()
}

// distinct returns the requests that are test data, in the order of their names. Of equal requests, for example of a
// synchronous and an asynchronous client, it keeps the first.
func distinct(requests []recorded) []recorded {
	slices.SortFunc(requests, func(a, b recorded) int { return strings.Compare(a.Name, b.Name) })
	seen := map[string]bool{}
	return slices.DeleteFunc(requests, func(r recorded) bool {
		key := r.Endpoint + string(r.Body)
		equal := seen[key] && !strings.HasPrefix(r.Name, "option/")
		seen[key] = true
		return equal || strings.Contains(r.Name, "/retry/") || strings.Contains(r.Name, "/long/")
	})
}

// compareRecording compares with the test data, or writes it.
func compareRecording(t *testing.T, now recording) {
	t.Helper()
	if *update {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // The clients do not escape HTML.
		encoder.SetIndent("", " ")
		if err := errors.Join(encoder.Encode(now), os.WriteFile(data, text.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	var want recording
	if err := json.Unmarshal(old, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Options, now.Options) + cmp.Diff(want.Versions, now.Versions); diff != "" {
		t.Errorf("the clients have other versions or options than the recorded ones (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(bodies(t, want), bodies(t, now)); diff != "" {
		t.Errorf("the clients send other requests than the recorded ones (-want +got); -update records them:\n%s", diff)
	}
}

// bodies returns the bodies of the requests by their names, as compact JSON.
func bodies(t *testing.T, r recording) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, request := range r.Requests {
		var body bytes.Buffer
		if err := json.Compact(&body, request.Body); err != nil {
			t.Fatal(err)
		}
		all[request.Name] = body.String()
	}
	return all
}
