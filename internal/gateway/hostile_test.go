// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// walkStep is a request of an agent, with the status of the answer.
type walkStep struct {
	name, path, token, body string
	status                  int
}

// walk are requests of an agent that misbehaves.
var walk = []walkStep{
	{"no token", "chat/completions", "", `{}`, 401},
	{"another token", "messages", "sk-other", `{}`, 401},
	{"no JSON", "chat/completions", "own", `{"model": `, 400},
	{"50 MB", "chat/completions", "own", `{"model": "` + strings.Repeat("x", 50<<20) + `"}`, 413},
	{"50 MB of messages", "messages", "own", `{"model": "` + strings.Repeat("x", 50<<20) + `"}`, 413},
	{"10,000 messages", "chat/completions", "own", `{"model": "m", "messages": [` +
		strings.Repeat(`{"role": "user", "content": "x"},`, 9_999) + `{"role": "user", "content": "x"}]}`, 400},
	{"an unknown role", "chat/completions", "own",
		`{"model": "m", "messages": [{"role": "wizard", "content": "x"}]}`, 400},
	{"an unknown role of messages", "messages", "own",
		`{"model": "m", "max_tokens": 9, "messages": [{"role": "tool", "content": "x"}]}`, 400},
	{"an image", "chat/completions", "own", `{"model": "m", "messages": [{"role": "user", "content": [{"type": ` +
		`"image_url", "image_url": {"url": "data:,"}}]}]}`, 400},
	{"an image of messages", "messages", "own", `{"model": "m", "max_tokens": 9, "messages": [{"role": "user", ` +
		`"content": [{"type": "image", "source": {}}]}]}`, 400},
	{"a malformed call", "chat/completions", "own", `{"model": "m", "messages": [{"role": "assistant", "tool_calls": ` +
		`[{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}}]}]}`, 400},
	{"a result of no call", "chat/completions", "own",
		`{"model": "m", "messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]}`, 400},
	{"an unknown path", "embeddings", "own", `{"model": "m", "input": "x"}`, 404},
	{"an unknown field", "chat/completions", "own",
		`{"model": "m", "wizardry": 1, "messages": [{"role": "user", "content": "after an unknown field"}]}`, 200},
}

// TestHostileAgents plays an episode of an agent that does everything it should not: each request has an error of the
// dialect, requests between them are answered, and the episode is trained on. Its worker serves the next episode, and a
// request after the end is refused.
func TestHostileAgents(t *testing.T) {
	server, err := gateway.Listen(gateway.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for range 2 {
		var ended *gateway.Episode
		group := playHostile(t, server, func(e *gateway.Episode) error {
			ended = e
			var failures []error
			for i, step := range walk {
				failures = append(failures, step.ask(t.Context(), e, i))
			}
			return errors.Join(failures...)
		})
		if group.Outcome != rl.Usable || len(group.Members[0].Trajectories) == 0 {
			t.Fatalf("the episode is %v: %s", group.Outcome, group.Reason)
		}
		status, _, err := ask(t.Context(), ended, "chat/completions", ended.Token(), `{}`)
		if status != http.StatusUnauthorized || err != nil {
			t.Errorf("after the end: status %d, %v", status, err)
		}
	}
}

// TestHostileBodyThatDoesNotEnd sends the beginning of a body: the request is refused after a second. No other request
// is made, since a large one may take longer on a busy machine.
func TestHostileBodyThatDoesNotEnd(t *testing.T) {
	server, err := gateway.Listen(gateway.Config{BodyWithin: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	playHostile(t, server, func(e *gateway.Episode) error {
		if err := neverEnds(t.Context(), e, server); err != nil {
			t.Error(err)
		}
		return nil
	})
}

// ask makes the request, and a good one after it.
func (s walkStep) ask(ctx context.Context, e *gateway.Episode, number int) error {
	token := s.token
	if token == "own" {
		token = e.Token()
	}
	status, answer, err := ask(ctx, e, s.path, token, s.body)
	if err != nil || status != s.status || status != http.StatusOK && !strings.Contains(answer, `"error"`) {
		return fmt.Errorf("%s has status %d, want %d (%w): %.300s", s.name, status, s.status, err, answer)
	}
	good := fmt.Sprintf(`{"model": "m", "messages": [{"role": "user", "content": "question %d"}]}`, number)
	if status, answer, err := ask(ctx, e, "chat/completions", e.Token(), good); err != nil || status != http.StatusOK {
		return fmt.Errorf("after %s: status %d (%w): %.300s", s.name, status, err, answer)
	}
	return nil
}

// neverEnds sends the beginning of a body, and no more of it.
func neverEnds(ctx context.Context, e *gateway.Episode, server *gateway.Server) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.HostPort())
	if err != nil {
		return err
	}
	defer connection.Close()
	_, path, _ := strings.Cut(e.URL(dialect.OpenAI), server.HostPort())
	if _, err := fmt.Fprintf(connection, "POST %s/chat/completions HTTP/1.1\r\nHost: gateway\r\n"+
		"Authorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{\"model\": ", path, e.Token()); err != nil {
		return err
	}
	answer, err := io.ReadAll(connection)
	if err == nil && !strings.Contains(string(answer), " 400 ") {
		err = fmt.Errorf("a body that does not end has the answer %.300s", answer)
	}
	return err
}

func ask(ctx context.Context, e *gateway.Episode, path, token, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL(dialect.OpenAI)+"/"+path,
		strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// playHostile plays an episode of an agent, in the format of Qwen3.
func playHostile(t *testing.T, server *gateway.Server, run func(e *gateway.Episode) error) rl.Group {
	t.Helper()
	tokens := vocabulary(t, "qwen3")
	format, err := families.New("qwen3", tokens, families.Options{End: "<|im_end|>"})
	if err != nil {
		t.Fatal(err)
	}
	said := tokens.AppendEncode(nil, "Hello.<|im_end|>", tokenizer.Specials)
	player := &episode.Player{Environment: &played{server: server, run: run}, Renderer: format, Policy: talker{said},
		Gate: open{}, Progress: &episode.Progress{}}
	group, err := player.Play(t.Context(), capturedSpec())
	if err != nil {
		t.Fatal(err)
	}
	return group
}
