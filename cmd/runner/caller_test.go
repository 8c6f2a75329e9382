// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// raw is a caller that may write anything.
type raw struct {
	t   *testing.T
	net net.Conn
	in  *bufio.Scanner
}

func (h *host) raw(t *testing.T) *raw {
	t.Helper()
	conn, err := net.DialTimeout("unix", h.socket(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &raw{t: t, net: conn, in: bufio.NewScanner(conn)}
}

// say writes lines, and returns the code of the next answer, its type if it has none, or "closed".
func (r *raw) say(lines string) string {
	r.t.Helper()
	_, _ = io.WriteString(r.net, lines) // the runner may have closed the connection
	if !r.in.Scan() {
		return "closed"
	}
	m, err := protocol.Decode(r.in.Bytes(), protocol.DefaultLines, protocol.ToCaller)
	if err != nil {
		r.t.Fatal(err)
	}
	if m.Error != nil {
		return string(m.Error.Code)
	}
	return string(m.Type)
}

// TestCallersThatAreWrong runs callers that break every rule. None of them disturbs the next.
func TestCallersThatAreWrong(t *testing.T) {
	h := startRunner(t)
	const hello = `{"type":"hello","versions":[1]}` + "\n"
	start := `{"type":"start","id":%,"program":"p","spec":{"command":["/bin/sh","-c","read x; echo '{\"type\":\"ready\",\"version\":1}'; cat >/dev/null"],"limits":{}}}` + "\n"
	cases := map[string]struct {
		lines []string
		want  string
	}{
		"a later version alone":   {[]string{`{"type":"hello","versions":[3]}` + "\n", ""}, "unsupported_version closed"},
		"a later version besides": {[]string{`{"type":"hello","versions":[1,3],"new":1}` + "\n"}, "hello"},
		"no hello":                {[]string{`{"type":"stop","id":1,"program":"p"}` + "\n", ""}, "bad_request closed"},
		"two hellos":              {[]string{hello, hello, hello}, "hello bad_request bad_request"},
		"no JSON":                 {[]string{hello, "hello\n", ""}, "hello bad_line closed"},
		"a deep line":             {[]string{hello, strings.Repeat("[", 100) + "\n", ""}, "hello too_deep closed"},
		"a long line":             {[]string{hello, strings.Repeat("x", 17<<20), ""}, "hello line_too_long closed"},
		"an unknown type": {[]string{hello, `{"type":"launch","id":1}` + "\n",
			`{"type":"stop","id":1,"program":"p"}` + "\n"}, "hello unknown_type unknown_program"},
		"a type of the runner's": {[]string{hello, `{"type":"started","id":1}` + "\n"}, "hello unknown_type"},
		"no program": {[]string{hello, `{"type":"call","id":1,"program":"p","method":"m"}` + "\n"},
			"hello unknown_program"},
		"an id twice": {[]string{hello, strings.ReplaceAll(start, "%", "5"),
			`{"type":"call","id":5,"program":"p","method":"m"}` + "\n"}, "hello started duplicate_id"},
		"a program twice": {[]string{hello, strings.ReplaceAll(start, "%", "1"), strings.ReplaceAll(start, "%", "2")},
			"hello started bad_request"},
		"answers nobody asked": {[]string{hello, strings.ReplaceAll(start, "%", "1"),
			`{"type":"answer","id":9,"program":"p"}` + "\n" + `{"type":"cancel","id":9,"program":"p"}` + "\n" +
				`{"type":"stop","id":2,"program":"p"}` + "\n"}, "hello started stopped"},
		"a session nobody opened": {[]string{hello, strings.ReplaceAll(start, "%", "1"),
			`{"type":"close","id":2,"program":"p","session":"s"}` + "\n"}, "hello started unknown_session"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			caller := h.raw(t)
			var got []string
			for _, line := range tc.lines {
				got = append(got, caller.say(line))
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			caller.net.Close()
		})
	}
	if got := do(t, startRaw(t, h.dial(t), 1), "", "list"); got != "[]" {
		t.Errorf("the next caller: got %s, want an answer", got)
	}
}

// TestConnectionsAreBounded checks that callers beyond the bound are refused, and served when others have left.
func TestConnectionsAreBounded(t *testing.T) {
	h := startRunner(t)
	var all []*client.Client
	for range 8 {
		all = append(all, h.dial(t))
	}
	if c, err := client.Dial(t.Context(), h.socket()); err == nil {
		c.Close()
		t.Fatal("a ninth caller: got no error")
	}
	all[0].Close()
	eventually(t, "another is served", func() bool {
		c, err := client.Dial(t.Context(), h.socket())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// TestCallerThatDoesNotRead leaves answers unread until the runner disconnects the caller. Other callers are served
// meanwhile.
func TestCallerThatDoesNotRead(t *testing.T) {
	needPython(t)
	h := startRunner(t)
	p := startRaw(t, h.dial(t), 1)
	lazy := h.raw(t)
	_, _ = io.WriteString(lazy.net, `{"type":"hello","versions":[1]}`+"\n")
	line := []byte(`{"type":"call","id":1,"program":"` + strings.Repeat("x", 100) + `","method":"m"}` + "\n")
	lines := []byte(strings.Repeat(string(line), 1000))
	for {
		if _, err := lazy.net.Write(lines); err != nil {
			break // The runner has disconnected the caller.
		}
	}
	if got := do(t, p, "", "list"); got != "[]" {
		t.Errorf("another caller: got %s, want an answer", got)
	}
}

// TestRunnerThatIsNotProcess1 runs the runner as an ordinary process, which must find all descendants, too.
func TestRunnerThatIsNotProcess1(t *testing.T) {
	h := tryRunner(t, false, "")
	if h == nil {
		t.Fatal("the runner does not start")
	}
	p := startRaw(t, h.dial(t), 1)
	for _, method := range []string{"daemon", "restless_daemon"} {
		if _, err := p.Open(t.Context(), method, 0); err != nil {
			t.Fatal(describe(err))
		}
		do(t, p, method, method)
		if _, err := p.CloseSession(t.Context(), method); err != nil {
			t.Fatal(describe(err))
		}
		eventually(t, "the daemon has ended", func() bool { return h.below(t) == 1 })
	}
	do(t, p, "", "daemon")
	do(t, p, "", "die")
	if got := do(t, p, "", "list"); got != "[]" {
		t.Errorf("the next call: got %s, want an answer", got)
	}
	eventually(t, "what the process has left has ended", func() bool { return h.below(t) == 1 })
	if !strings.Contains(h.log.String(), "not process 1") {
		t.Errorf("got the log %q, want it to name the promise that does not hold", h.log)
	}
}
