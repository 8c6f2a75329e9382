// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
)

// played is a program in Go.
type played func(ctx context.Context, params json.RawMessage, alone bool) (json.RawMessage, pythonreward.Ending, error)

func (played) Check(context.Context) error { return nil }

func (played) InPods() bool { return false }

func (p played) Play(ctx context.Context, e pythonreward.Episode) (json.RawMessage, pythonreward.Ending, error) {
	return p(ctx, e.Params, e.Alone)
}

// counting is a policy that answers with numbers.
type counting struct {
	environment.AgentPolicy
	err error
	// expired, if not nil, is closed once the time of the episode is over.
	expired chan struct{}
	// released, if not nil, is awaited before each reply.
	released chan struct{}

	mu   sync.Mutex
	said int
}

func (c *counting) Complete(ctx context.Context, _ environment.Completion) (environment.Completed, error) {
	if c.released != nil {
		select {
		case <-c.released:
		case <-ctx.Done():
			return environment.Completed{}, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return environment.Completed{}, c.err
	}
	c.said++
	return environment.Completed{ID: fmt.Sprint(c.said),
		Message: chat.Message{Role: chat.RoleAssistant, Content: fmt.Sprint(c.said)}}, nil
}

func (c *counting) Expired() <-chan struct{} { return c.expired }

func (c *counting) Last() (environment.Reply, error) {
	return environment.Reply{Message: chat.Message{Role: chat.RoleAssistant, Content: "2"}}, nil
}

// begin begins an episode of a row whose answer is 2.
func begin(t *testing.T, program played, config gateway.Config, options Options) environment.Program {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	var server *gateway.Server
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	server = gateway.New(web.URL, config)
	row := dataset.NewRow("1+1?", "2")
	row.ID, row.Fields = "row-1", map[string]any{"hint": "small", "solution": "2"}
	var grader verify.Grader = verify.ExactMatch{}
	if options.Source == Agent {
		grader = nil
	}
	env := New(program, oneRow{row}, grader, func() (*gateway.Server, error) { return server, nil }, options)
	episode, err := env.Start(t.Context(), environment.Task{Split: "train", Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return episode.(environment.Program)
}

type oneRow struct{ row dataset.Row }

func (o oneRow) Splits(context.Context) ([]environment.Split, error) { return nil, nil }

func (o oneRow) Row(context.Context, string, int64) (dataset.Row, error) { return o.row, nil }

// ask makes a request as an agent in Python does, and returns the status.
func ask(ctx context.Context, params json.RawMessage) (int, error) {
	var given struct {
		BaseURL string `json:"base_url"`
	}
	if err := json.Unmarshal(params, &given); err != nil {
		return 0, err
	}
	body := `{"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "1+1?"}]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, given.BaseURL+"/chat/completions",
		strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer any")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// returns is an agent that asks once, and returns a value.
func returns(value string) played {
	return func(ctx context.Context, params json.RawMessage, _ bool) (json.RawMessage, pythonreward.Ending, error) {
		if status, err := ask(ctx, params); status != http.StatusOK || err != nil {
			return nil, pythonreward.Failed, fmt.Errorf("status %d, %w", status, err)
		}
		return json.RawMessage(value), pythonreward.Ended, nil
	}
}

// left is a command that ends with a result.
func left(result spawn.Result) played {
	return func(context.Context, json.RawMessage, bool) (json.RawMessage, pythonreward.Ending, error) {
		value, err := json.Marshal(result)
		return value, pythonreward.Ended, err
	}
}

func TestRewards(t *testing.T) {
	cases := map[string]struct {
		program played
		options Options
		reward  float64
		fault   string
	}{
		"the last message":    {returns(`{"output": null}`), Options{}, 1, ""},
		"what is returned":    {returns(`{"output": "It is 3."}`), Options{Source: Output}, 0, ""},
		"nothing is returned": {returns(`{"output": null}`), Options{Source: Output}, 0, "returned no text"},
		"a " +
			"reward": {returns(`{"reward": 0.25, "correct": true, "metrics": {"n": 2}}`), Options{Source: Agent}, 0.25, ""},
		"what is printed": {left(spawn.Result{Output: "2\n"}), Options{Source: Output, Command: true}, 1, ""},
		"a file": {left(spawn.Result{Files: map[string]string{"out.txt": "2"}}),
			Options{Source: File, File: "out.txt", Command: true}, 1, ""},
		"no file": {left(spawn.Result{}), Options{Source: File, File: "out.txt", Command: true}, 0, "not written the file"},
		"a result": {left(spawn.Result{Files: map[string]string{"result.json": "0.5"}}),
			Options{Source: Agent, Command: true}, 0.5, ""},
		"a metric reward": {left(spawn.Result{Files: map[string]string{
			"result.json": `{"reward": 0.5, "metrics": {"reward": 9, "n": 2}}`}}), Options{Source: Agent, Command: true}, 0.5, ""},
		"metrics that are null": {left(spawn.Result{Files: map[string]string{
			"result.json": `{"reward": 0.5, "metrics": null}`}}), Options{Source: Agent, Command: true}, 0.5, ""},
		"a result that is none": {left(spawn.Result{Files: map[string]string{"result.json": `{"score": 1}`}}),
			Options{Source: Agent, Command: true}, 0, "has no reward"},
		"no result": {left(spawn.Result{}), Options{Source: Agent, Command: true}, 0, "not written the file result.json"},
		"an exit code": {left(spawn.Result{Exit: 3, Last: "boom", Output: "2"}), Options{Source: Output, Command: true}, 0,
			"exit code 3: boom"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			turn, err := begin(t, tc.program, gateway.Config{}, tc.options).Run(t.Context(), &counting{})
			var fault *environment.Fault
			switch {
			case tc.fault != "":
				if !errors.As(err, &fault) || !fault.Permanent || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("got %v, %v; want a permanent fault with %q", turn, err, tc.fault)
				}
			case err != nil || !turn.Done || len(turn.Rewards) != 1 || turn.Rewards[0].Value != tc.reward:
				t.Errorf("got %+v, %v; want the reward %v", turn, err, tc.reward)
			}
		})
	}
}

// TestTasks checks the fields of a row that an agent is given. The answer is among them only if the agent reports its
// reward.
func TestTasks(t *testing.T) {
	messages := []any{map[string]any{"role": "user", "content": "1+1?"}}
	cases := map[string]struct {
		options Options
		want    map[string]any
	}{
		"by default": {Options{}, map[string]any{"id": "row-1", "prompt": "1+1?", "messages": messages}},
		"a field": {Options{Fields: []string{"hint"}}, map[string]any{"id": "row-1", "prompt": "1+1?", "messages": messages,
			"hint": "small"}},
		"everything": {Options{Source: Agent}, map[string]any{"id": "row-1", "prompt": "1+1?", "messages": messages,
			"hint": "small", "solution": "2", "answer": "2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var given struct{ Task map[string]any }
			program := func(_ context.Context, params json.RawMessage, _ bool) (json.RawMessage, pythonreward.Ending, error) {
				value := `{"output": "2"}`
				if tc.options.Source == Agent {
					value = `{"reward": 1}`
				}
				return json.RawMessage(value), pythonreward.Ended, json.Unmarshal(params, &given)
			}
			if _, err := begin(t, program, gateway.Config{}, tc.options).Run(t.Context(), &counting{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, given.Task); diff != "" {
				t.Errorf("the task (-want +got):\n%s", diff)
			}
		})
	}
}

// TestVariablesOfCommands checks that the variables of a command are all in Variables: otherwise its episodes would not
// share its imports. Only a command that reports its reward has a file for it.
func TestVariablesOfCommands(t *testing.T) {
	always := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "TASK_FILE"}
	for source, more := range map[Source][]string{LastMessage: nil, Output: nil, File: nil, Agent: {"RESULT_FILE"}} {
		var given spawn.Params
		program := func(_ context.Context, params json.RawMessage, _ bool) (json.RawMessage, pythonreward.Ending, error) {
			left := `{"exit": 0, "output": "2", "files": {"answer": "2", "result.json": "{\"reward\": 1}"}}`
			return json.RawMessage(left), pythonreward.Ended, json.Unmarshal(params, &given)
		}
		options := Options{Command: true, Source: source, File: "answer"}
		if _, err := begin(t, program, gateway.Config{}, options).Run(t.Context(), &counting{}); err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(maps.Keys(given.Env))
		if diff := cmp.Diff(slices.Sorted(slices.Values(slices.Concat(always, more))), got); diff != "" {
			t.Errorf("source %d: the variables (-want +got):\n%s", source, diff)
		}
		for _, name := range got {
			if !slices.Contains(Variables, name) {
				t.Errorf("Variables lacks %s: no command would be forked", name)
			}
		}
	}
}

// TestEndings checks the outcome of each way in which an agent can end.
func TestEndings(t *testing.T) {
	asks := func(end pythonreward.Ending, failure error) played {
		return func(ctx context.Context, params json.RawMessage, _ bool) (json.RawMessage, pythonreward.Ending, error) {
			_, err := ask(ctx, params)
			return json.RawMessage(`{"output": "2"}`), end, errors.Join(err, failure)
		}
	}
	broke := errors.New("it broke")
	cases := map[string]struct {
		program     played
		policy      error
		interrupted bool
		limit       string
		fault       string
		isKilled    bool // because it does not end in its grace after a limit
	}{
		"a failure":               {program: asks(pythonreward.Failed, broke), fault: "it broke"},
		"a process that was lost": {program: asks(pythonreward.Lost, broke), interrupted: true, fault: "it broke"},
		// What the agent would have done about the limit is not known. The next try has a process to itself.
		"a process that was lost after a limit": {program: asks(pythonreward.Lost, broke),
			policy: &environment.LimitError{Limit: "requests"}, interrupted: true, fault: "it broke"},
		"a failure after a limit": {program: asks(pythonreward.Failed, broke),
			policy: &environment.LimitError{Limit: "requests"}, limit: "requests"},
		"a failure after a limit of tokens": {program: asks(pythonreward.Failed, broke),
			policy: &environment.LimitError{Limit: "trajectory_tokens", Tokens: 2, Most: 1}, limit: "trajectory_tokens"},
		"an end after a limit": {program: asks(pythonreward.Ended, nil), policy: &environment.LimitError{Limit: "requests"}},
		"no end after a limit": {program: func(ctx context.Context, params json.RawMessage,
			_ bool) (json.RawMessage, pythonreward.Ending, error) {
			_, _ = ask(ctx, params)
			<-ctx.Done()
			return nil, pythonreward.Lost, ctx.Err()
		}, policy: &environment.LimitError{Limit: "requests"}, limit: "requests", isKilled: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			grace := time.Hour
			if tc.isKilled {
				grace = time.Millisecond
			}
			episode := begin(t, tc.program, gateway.Config{}, Options{Source: Output, Grace: grace})
			_, err := episode.Run(t.Context(), &counting{err: tc.policy})
			var fault *environment.Fault
			var limit *environment.LimitError
			switch {
			case tc.limit != "":
				if !errors.As(err, &limit) || limit.Limit != tc.limit {
					t.Errorf("got %v, want the limit %s", err, tc.limit)
				}
			case tc.fault == "":
				if err != nil {
					t.Errorf("got %v, want the agent's end", err)
				}
			case !errors.As(err, &fault) || fault.Interrupted != tc.interrupted || fault.Permanent == tc.interrupted:
				t.Errorf("got %#v, want a fault, interrupted %v", err, tc.interrupted)
			}
		})
	}
}

// TestTimeIsOver plays agents whose time is over: each may end by itself within the grace, and is ended after it.
func TestTimeIsOver(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for name, tc := range map[string]struct {
		program played
		grace   time.Duration
		limited bool
	}{
		"an end within the grace": {returns(`{"output": "2"}`), time.Hour, false},
		"no end": {func(ctx context.Context, _ json.RawMessage, _ bool) (json.RawMessage, pythonreward.Ending, error) {
			<-ctx.Done()
			return nil, pythonreward.Lost, ctx.Err()
		}, time.Millisecond, true},
		"a failure within the grace": {func(context.Context, json.RawMessage,
			bool) (json.RawMessage, pythonreward.Ending, error) {
			return nil, pythonreward.Failed, errors.New("it was told")
		}, time.Hour, true},
	} {
		episode := begin(t, tc.program, gateway.Config{}, Options{Source: Output, Grace: tc.grace})
		_, err := episode.Run(t.Context(), &counting{expired: over})
		var limit *environment.LimitError
		if errors.As(err, &limit) != tc.limited || tc.limited && limit.Limit != environment.LimitEpisodeSeconds ||
			!tc.limited && err != nil {
			t.Errorf("%s: got %v, want a limit: %v", name, err, tc.limited)
		}
	}
}

// TestOutagesAreNotTheAgents makes an agent fail after it was asked to come back: its open request is awaited, and the
// episode is played again.
func TestOutagesAreNotTheAgents(t *testing.T) {
	policy := &counting{released: make(chan struct{})}
	program := func(ctx context.Context, params json.RawMessage, _ bool) (json.RawMessage, pythonreward.Ending, error) {
		status, err := ask(ctx, params)
		if status != http.StatusServiceUnavailable || err != nil {
			t.Errorf("status %d (%v), want 503", status, err)
		}
		close(policy.released)
		return nil, pythonreward.Failed, errors.New("the service does not answer")
	}
	_, err := begin(t, program, gateway.Config{AnswerWithin: time.Nanosecond}, Options{}).Run(t.Context(), policy)
	var fault *environment.Fault
	if !errors.As(err, &fault) || !fault.Interrupted || fault.Permanent {
		t.Errorf("got %v, want an interruption", err)
	}
	if policy.said != 1 {
		t.Errorf("the request was sampled %d times before the end, want once", policy.said)
	}
}

// inPods is a program that reaches the gateway by connections that its runner carries.
type inPods struct {
	played func(e pythonreward.Episode) error
}

func (inPods) Check(context.Context) error { return nil }

func (inPods) InPods() bool { return true }

func (p inPods) Play(_ context.Context, e pythonreward.Episode) (json.RawMessage, pythonreward.Ending, error) {
	return json.RawMessage(`{"output": "2"}`), pythonreward.Ended, p.played(e)
}

// TestAgentsInPods checks that the parameters of an agent have a placeholder as the address of the gateway, and that
// the connections that its runner carries are served. Like all others, they need the token of an episode.
func TestAgentsInPods(t *testing.T) {
	server := gateway.New("http://192.0.2.1:9", gateway.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(server.Close)
	row := dataset.NewRow("1+1?", "2")
	program := inPods{func(e pythonreward.Episode) error {
		params := string(e.Params)
		if len(e.Gateway) < 16 || strings.Count(params, "http://"+e.Gateway+"/") != 1 ||
			strings.Contains(params, "192.0.2.1") {
			return fmt.Errorf("the parameters are %s, want the gateway %q", params, e.Gateway)
		}
		carried := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string,
			string) (net.Conn, error) {
			agent, worker := net.Pipe()
			go e.Serve(worker)
			return agent, nil
		}}}
		for _, url := range []string{"", "http://" + e.Gateway + "/" + strings.Repeat("0", 48) + "/v1/models"} {
			want := http.StatusUnauthorized
			if url == "" {
				_, after, _ := strings.Cut(params, "http://")
				url, _, _ = strings.Cut(after, `"`)
				url, want = "http://"+url+"/models", http.StatusOK
			}
			response, err := carried.Get(url)
			if err != nil {
				return err
			}
			_ = response.Body.Close()
			if response.StatusCode != want {
				return fmt.Errorf("%s: status %d, want %d", url, response.StatusCode, want)
			}
		}
		return nil
	}}
	env := New(program, oneRow{row}, verify.ExactMatch{}, func() (*gateway.Server, error) { return server, nil },
		Options{Source: Output})
	episode, err := env.Start(t.Context(), environment.Task{Split: "train", Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := episode.(environment.Program).Run(t.Context(), &counting{})
	if err != nil || turn.Rewards[0].Value != 1 {
		t.Errorf("got %+v, %v; want the reward 1", turn, err)
	}
}

// TestLostProcesses checks that an episode whose process was lost has the next process to itself.
func TestLostProcesses(t *testing.T) {
	var alones []bool
	program := func(_ context.Context, _ json.RawMessage, alone bool) (json.RawMessage, pythonreward.Ending, error) {
		alones = append(alones, alone)
		return nil, pythonreward.Lost, errors.New("it died")
	}
	episode := begin(t, program, gateway.Config{}, Options{})
	for range 2 {
		_, _ = episode.Run(t.Context(), &counting{})
	}
	if diff := cmp.Diff([]bool{false, true}, alones); diff != "" {
		t.Errorf("alone (-want +got):\n%s", diff)
	}
}

// TestCountedOptions checks that overruled options are counted as metrics.
func TestCountedOptions(t *testing.T) {
	turn, err := begin(t, returns(`{"output": "2"}`), gateway.Config{},
		Options{OnlyLast: true}).Run(t.Context(), &counting{})
	if err != nil || turn.Metrics["overruled_temperature"] != 1 || !turn.OnlyLast {
		t.Errorf("got %+v, %v; want a metric of the temperature", turn, err)
	}
}
