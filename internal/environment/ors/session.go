// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// A session has these metrics.
const (
	// MetricCut counts outputs of tools that were longer than the policy gets.
	MetricCut = "tool_outputs_cut"
	// MetricReconnects counts the times that a call was continued over another connection.
	MetricReconnects = "tool_reconnects"
)

// reminder answers a reply without a call where a call is needed.
const reminder = "No tool was called. Call one of the tools to continue."

// session is a session of the server.
type session struct {
	backend *Backend
	id      string
	// name is the name of the environment; it may be empty.
	name     string
	terminal *terminalTool
	// converses says that terminal is the answer tool of the options. Its results are sent to the policy until one of
	// them ends the episode.
	converses bool
	// deadline is when the session has to be ready.
	deadline time.Time
	// active says that a request has kept the session alive since the last ping was due.
	active    atomic.Bool
	stopPings context.CancelFunc
	closed    sync.Once
	// cut and reconnects are the session's values of MetricCut and MetricReconnects so far.
	cut, reconnects int
}

// createSession asks the server for the ID of a new session. If the server has no capacity, createSession either
// waits or returns the server's answer.
func (b *Backend) createSession(ctx context.Context, waits bool) (string, error) {
	var id string
	var full error
	r := request{method: http.MethodPost, path: "/create_session", body: struct{}{}, secrets: true, stream: true}
	err := b.repeat(ctx, isTransient, func() error {
		text, err := b.read(ctx, r, func(task string) { id = task })
		if !waits && hasStatus(err, http.StatusTooManyRequests) {
			full = err
			return nil
		}
		if err != nil {
			return err
		}
		var reply sessionReply
		if json.Unmarshal([]byte(text), &reply) == nil {
			id = cmp.Or(reply.ID, id)
		}
		if id == "" {
			return &replyError{errors.New("decoding the reply to POST /create_session: it names no session")}
		}
		return nil
	})
	if err == nil {
		err = full
	}
	if hasStatus(err, http.StatusNotFound) && b.options.Deployment != "" {
		err = fmt.Errorf("%w; %s: check its spelling, which has to be the service's own", err, b.options.given())
	}
	return id, err
}

// create begins the task. If the server already has the session, an earlier request arrived and its reply was lost:
// that is a success.
func (s *session) create(ctx context.Context, task environment.Task) error {
	s.deadline, _ = ctx.Deadline()
	body := createRequest{
		Environment: s.name, Split: task.Split, Index: task.Index, Toolset: s.backend.options.Toolset,
		Secrets: s.backend.secrets.body,
	}
	err := s.post(ctx, "/create", body)
	if hasStatus(err, http.StatusUnprocessableEntity) && s.backend.secrets.optional && body.Secrets != nil {
		body.Secrets = nil
		err = s.post(ctx, "/create", body)
	}
	if hasStatus(err, http.StatusBadRequest) && mentions(err, "already exists") {
		return nil
	}
	if body.Toolset != "" && mentions(err, "toolset") {
		return fmt.Errorf("%w; ors.toolset is %q: correct it, or remove it where the server has no toolsets", err,
			body.Toolset)
	}
	return err
}

// mentions reports whether the server's answer contains words, which are in lower case.
func mentions(err error, words string) bool {
	var status *httpstatus.Error
	return errors.As(err, &status) && strings.Contains(strings.ToLower(status.Detail), words)
}

func (s *session) post(ctx context.Context, path string, body any) error {
	r := request{method: http.MethodPost, path: path, session: s.id, body: body, secrets: path == "/create"}
	return s.backend.do(ctx, r, nil)
}

// get requests a resource of the environment, such as prompt. The context must end when the session has to be ready.
func (s *session) get(ctx context.Context, what string, out any) error {
	s.active.Store(true)
	return s.backend.do(ctx, request{method: http.MethodGet, path: pathOf(s.name) + "/" + what, session: s.id}, out)
}

// Messages implements tooluse.Session. Servers that have conversations are asked for one, and others for a prompt.
func (s *session) Messages(ctx context.Context) ([]chat.Message, error) {
	ctx, stop := context.WithDeadlineCause(ctx, s.deadline, errCreateTimeout)
	defer stop()
	messages, err := s.messages(ctx)
	if err != nil {
		return nil, faultOfSession(ctx, "reading the prompt", err)
	}
	return messages, nil
}

func (s *session) messages(ctx context.Context) ([]chat.Message, error) {
	if !s.backend.lacksMessages.Load() {
		var conversation []message
		err := s.get(ctx, "messages", &conversation)
		if err == nil {
			return messagesOf(conversation), nil
		}
		if !hasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed) {
			return nil, err
		}
	}
	var prompt []block
	if err := s.get(ctx, "prompt", &prompt); err != nil {
		return nil, err
	}
	s.backend.lacksMessages.Store(true)
	return []chat.Message{{Role: chat.RoleUser, Content: textOf(prompt)}}, nil
}

// Tools implements tooluse.Session.
func (s *session) Tools(ctx context.Context) ([]chat.Tool, error) {
	ctx, stop := context.WithDeadlineCause(ctx, s.deadline, errCreateTimeout)
	defer stop()
	var list toolList
	err := s.get(ctx, "task_tools", &list)
	if hasStatus(err, http.StatusNotFound) {
		err = s.get(ctx, "tools", &list)
	}
	if err != nil {
		return nil, faultOfSession(ctx, "listing the tools", err)
	}
	s.terminal = list.Terminal
	if own := s.backend.options.AnswerTool; s.terminal == nil && own != nil {
		if err := checkListed(own.Name, list); err != nil {
			return nil, &environment.Fault{Permanent: true, Err: err}
		}
		s.terminal, s.converses = &terminalTool{Name: own.Name}, true
		if own.Argument != "" {
			s.terminal.Argument = &own.Argument
		}
	}
	return toolsOf(list, s.terminal), nil
}

// checkListed fails if the environment does not list the tool for answers.
func checkListed(tool string, list toolList) error {
	names := make([]string, len(list.Tools))
	for i, t := range list.Tools {
		names[i] = t.Name
	}
	if slices.Contains(names, tool) {
		return nil
	}
	return fmt.Errorf("ors.answerTool.name is %q, which is not a tool of the environment; its tools are: %s", tool,
		strings.Join(names, ", "))
}

// Call implements tooluse.Session. Arguments that are not a JSON object are the policy's mistake, which the server need
// not see.
func (s *session) Call(ctx context.Context, call chat.ToolCall) (tooluse.Result, error) {
	input := json.RawMessage(cmp.Or(call.Arguments, "{}"))
	var object map[string]json.RawMessage
	if err := json.Unmarshal(input, &object); err != nil || object == nil {
		return tooluse.Result{Text: "Error: the arguments of a call must be a JSON object.", Invalid: true}, nil
	}
	return s.run(ctx, call.Name, input)
}

// run runs a tool within the time that a call may take.
func (s *session) run(ctx context.Context, name string, input json.RawMessage) (tooluse.Result, error) {
	ctx, stop := context.WithTimeoutCause(ctx, s.backend.options.CallTimeout, errCallTimeout)
	defer stop()
	s.active.Store(true)
	r := request{method: http.MethodPost, path: pathOf(s.name) + "/call", session: s.id, stream: true}
	reply, reconnects, err := s.backend.call(ctx, r, callRequest{Name: name, Input: input})
	s.reconnects += reconnects
	if err != nil {
		return tooluse.Result{}, faultOfSession(ctx, fmt.Sprintf("calling tool %q", name), err)
	}
	return s.resultOf(reply), nil
}

// resultOf returns the result of a call for the policy.
func (s *session) resultOf(reply callReply) tooluse.Result {
	result := tooluse.Result{Text: "Error: " + reply.Error, Invalid: true}
	if reply.OK {
		result = tooluse.Result{Text: textOf(reply.Output.Blocks), Done: reply.Output.Finished}
		if reply.Output.Reward != nil {
			result.Rewards = []environment.Reward{{Value: *reply.Output.Reward}}
		}
	}
	if len(result.Text) > s.backend.options.MaxText {
		s.cut++
		result.Text = fmt.Sprintf("%s\n[The output was cut: it has %d bytes.]",
			contract.Truncate(result.Text, s.backend.options.MaxText), len(result.Text))
	}
	result.Metrics = map[string]float64{MetricCut: float64(s.cut), MetricReconnects: float64(s.reconnects)}
	return result
}

// Answer implements tooluse.Session. A reply without a call is the answer if the server names a tool for answers.
// Otherwise the answer tool of the options gets the reply, and decides whether the episode ends. If there is no such
// tool either, the policy is asked to call a tool.
func (s *session) Answer(ctx context.Context, reply environment.Reply) (tooluse.Outcome, error) {
	if s.terminal == nil {
		return tooluse.Outcome{Text: reminder}, nil
	}
	input := json.RawMessage("{}")
	if s.terminal.Argument != nil {
		encoded, err := json.Marshal(map[string]string{*s.terminal.Argument: reply.Message.Content})
		if err != nil {
			return tooluse.Outcome{}, &environment.Fault{Permanent: true, Err: fmt.Errorf("encoding the answer: %w", err)}
		}
		input = encoded
	}
	result, err := s.run(ctx, s.terminal.Name, input)
	if err != nil {
		return tooluse.Outcome{}, err
	}
	outcome := tooluse.Outcome{Rewards: result.Rewards, Metrics: result.Metrics}
	if s.converses && !result.Done {
		outcome.Text = result.Text
	}
	return outcome, nil
}

// Finish implements tooluse.Session. The server rewards calls only, so that nothing is earned by stopping.
func (s *session) Finish(context.Context, *environment.Reply) (tooluse.Outcome, error) {
	return tooluse.Outcome{}, nil
}

// Close implements tooluse.Session. Only its first call has an effect.
func (s *session) Close(ctx context.Context) {
	s.closed.Do(func() {
		s.stopPings()
		s.delete(ctx)
		s.backend.release()
	})
}

// abandon deletes the session at the server, even if ctx has ended.
func (s *session) abandon(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer stop()
	s.delete(ctx)
}

// delete deletes the session at the server and at the hosted service. Failures cost nothing but the server's memory
// until it removes the session by itself.
func (s *session) delete(ctx context.Context) {
	for _, path := range []string{"/delete", "/delete_session"} {
		if err := s.post(ctx, path, nil); err != nil {
			s.backend.options.Logger.Debug("deleting session", "path", path, "err", err)
		}
	}
}

// startPings keeps the session alive until it is closed. It sends a ping whenever one is due, unless a request has
// kept the session alive meanwhile.
func (s *session) startPings() {
	ctx, stop := context.WithCancel(context.Background())
	s.stopPings = stop
	go func() {
		for wait.Sleep(ctx, s.backend.pace.ping) == nil {
			if !s.active.Swap(false) {
				// An error is a panic, which Guard has logged.
				_, _ = environment.Guard(s.backend.options.Logger, "pinging a session", func() (struct{}, error) {
					s.ping(ctx)
					return struct{}{}, nil
				})
			}
		}
	}()
}

// ping keeps the session alive. If the server has lost the session, the next call finds out.
func (s *session) ping(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, s.backend.pace.idle)
	defer stop()
	response, err := s.backend.send(ctx, request{method: http.MethodPost, path: "/ping", session: s.id})
	if err != nil {
		s.backend.options.Logger.Debug("pinging session", "err", err)
		return
	}
	response.Body.Close()
}

// faultOfSession is faultOf for requests within a session. A session that the server does not know any more is not a
// permanent fault: the episode begins anew in another session.
func faultOfSession(ctx context.Context, doing string, err error) error {
	result := faultOf(ctx, doing, err)
	if fault, ok := errors.AsType[*environment.Fault](result); ok && hasStatus(err, http.StatusNotFound) {
		fault.Permanent = false
	}
	return result
}

var _ tooluse.Session = (*session)(nil)
