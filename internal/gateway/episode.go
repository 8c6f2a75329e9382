// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
)

// DefaultModel is the name of the only model of a definition without roles.
const DefaultModel = "policy"

// mostKept bounds the messages of the responses that a later request may continue.
const mostKept = 100_000

// Options are the options of an episode.
type Options struct {
	// Address is the address, without a path, at which the agent reaches the server. Defaults to the server's own.
	Address string
	// Roles are the names of models. If there are none, there is one role, whose name is empty, and every name of a model
	// means this role.
	Roles []string
	// Frozen are the models besides the policy, by name. Requests name them with the prefix environment.FrozenPrefix.
	Frozen map[string]environment.FrozenModel
	// Unsupported decides whether a field that the codec does not follow is ignored or refused.
	Unsupported dialect.Policy
}

// Episode serves one episode's agent at a server.
type Episode struct {
	server    *Server
	options   Options
	policy    environment.AgentPolicy
	id, token string
	// running is the context of requests, which outlive their connections.
	running context.Context
	cancel  context.CancelFunc

	mu   sync.Mutex
	over bool
	// calls has the calls whose reply was not delivered yet, by digest, in the order of their requests. open is the
	// number of these calls.
	calls map[digest][]*call
	open  int
	// sampling is the number of calls that have no reply yet.
	sampling  int
	counts    map[string]float64
	responses map[string]*response
	kept      []string
	keptSize  int
	// limit is the last limit that an answer to the agent reported.
	limit   string
	limited chan struct{}
	changed chan struct{}
}

// response is a conversation that a later request may continue by its ID.
type response struct {
	previous *response
	messages []chat.Message
}

func (r *response) conversation() []chat.Message {
	if r == nil {
		return nil
	}
	return append(r.previous.conversation(), r.messages...)
}

func newEpisode(ctx context.Context, s *Server, policy environment.AgentPolicy, options Options) *Episode {
	e := &Episode{server: s, options: options, policy: policy, id: randomName(), token: randomName(),
		calls: map[digest][]*call{}, counts: map[string]float64{}, responses: map[string]*response{},
		limited: make(chan struct{}), changed: make(chan struct{})}
	e.options.Address = cmp.Or(options.Address, s.address)
	e.running, e.cancel = context.WithCancel(ctx)
	return e
}

// URL returns the base URL of a dialect: the official clients of OpenAI add the path after /v1, and the clients of
// Anthropic add /v1 too.
func (e *Episode) URL(words dialect.Dialect) string {
	if words == dialect.Anthropic {
		return e.options.Address + "/" + e.id
	}
	return e.options.Address + "/" + e.id + "/v1"
}

// URLWithToken returns a base URL that contains the token, for clients of OpenAI that may send any key.
func (e *Episode) URLWithToken() string {
	return e.options.Address + "/" + e.id + "." + e.token + "/v1"
}

// Token returns the token of the episode, which clients call an API key.
func (e *Episode) Token() string { return e.token }

// Limited returns a channel that is closed once the episode has reached a limit after which its agent cannot go on.
func (e *Episode) Limited() <-chan struct{} { return e.limited }

// LastLimit returns the last limit that an answer to the agent reported; empty if there is none.
func (e *Episode) LastLimit() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.limit
}

// Ending counts the requests that an agent has left behind.
type Ending struct {
	// Unanswered counts requests without a reply, Refused counts requests whose client was asked to come back and did
	// not, and Left counts requests whose client went away before the reply came.
	Unanswered, Refused, Left int
}

// IsWhole reports whether each request was answered.
func (e Ending) IsWhole() bool { return e == Ending{} }

// End ends the episode for its agent: it takes no more requests. Open requests go on until Close.
func (e *Episode) End() Ending {
	e.server.forget(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	var ending Ending
	for _, list := range e.calls {
		for _, c := range list {
			switch {
			case c.writing:
			case c.refused:
				ending.Refused++
			case !c.ended:
				ending.Unanswered++
			default:
				ending.Left++
			}
		}
	}
	return ending
}

// Settle waits until all requests so far have their replies. The error is the error of the context.
func (e *Episode) Settle(ctx context.Context) error {
	for {
		e.mu.Lock()
		sampling, changed := e.sampling, e.changed
		e.mu.Unlock()
		if sampling == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the episode and its requests. It may be called several times.
func (e *Episode) Close() {
	e.End()
	e.cancel()
}

// Counts returns how often requests had options that were overruled or not followed, as metrics.
func (e *Episode) Counts() map[string]float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.counts)
}

// count counts the options of a request that are not followed.
func (e *Episode) count(request *dialect.Request) {
	e.mu.Lock()
	for _, name := range request.Overruled {
		e.counts["overruled_"+name]++
	}
	for _, field := range request.Ignored {
		e.counts["ignored_"+field.Name]++
	}
	if len(request.Ignored) > 0 {
		e.counts["options_ignored"]++
	}
	e.mu.Unlock()
	for _, name := range request.Overruled {
		e.server.tell(name, "an agent asks for another sampling than the run's, and has the run's")
	}
	for _, field := range request.Ignored {
		e.server.tell(field.Name, "an agent asks for something that the gateway does not have, and is answered without it")
	}
}

func (e *Episode) models() []dialect.Model {
	names := e.options.Roles
	if len(names) == 0 {
		names = []string{DefaultModel}
	}
	for _, name := range slices.Sorted(maps.Keys(e.options.Frozen)) {
		names = append(names[:len(names):len(names)], environment.FrozenPrefix+name)
	}
	models := make([]dialect.Model, len(names))
	for i, name := range names {
		models[i] = dialect.Model{Name: name, Created: e.server.config.Now()}
	}
	return models
}

// named returns a completion that asks a model: a role of the policy, or a frozen model.
func (e *Episode) named(model string) (environment.Completion, *dialect.Error) {
	name, isFrozen := strings.CutPrefix(model, environment.FrozenPrefix)
	if !isFrozen {
		role, failure := e.roleOf(model)
		return environment.Completion{Role: role}, failure
	}
	frozen, ok := e.options.Frozen[name]
	if !ok {
		return environment.Completion{}, unknownModel()
	}
	return environment.Completion{FrozenName: name, Frozen: frozen}, nil
}

// roleOf returns the role that a model name stands for.
func (e *Episode) roleOf(model string) (string, *dialect.Error) {
	switch {
	case len(e.options.Roles) == 0:
		return "", nil
	case slices.Contains(e.options.Roles, model):
		return model, nil
	}
	return "", unknownModel()
}

func unknownModel() *dialect.Error {
	return &dialect.Error{Kind: dialect.NotFound, Param: "model", Message: "The model does not exist. The models are " +
		"the roles and the frozen models of the environment, which the endpoint models lists."}
}

// keep remembers a response for requests that continue it. A long episode keeps only its newest responses.
func (e *Episode) keep(id string, previous *response, messages []chat.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.responses[id] == nil {
		e.kept = append(e.kept, id)
	}
	e.responses[id] = &response{previous: previous, messages: messages}
	e.keptSize += len(messages)
	for e.keptSize > mostKept && len(e.kept) > 1 {
		oldest := e.kept[0]
		e.keptSize -= len(e.responses[oldest].messages)
		delete(e.responses, oldest)
		e.kept = e.kept[1:]
	}
}

func (e *Episode) responseOf(id string) (*response, *dialect.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found := e.responses[id]; id == "" || found != nil {
		return found, nil
	}
	return nil, &dialect.Error{Kind: dialect.InvalidRequest, Code: "previous_response_not_found",
		Param: "previous_response_id", Message: "The response is not one of this episode."}
}

// errorOf returns the answer to a client for an error of the policy.
func (e *Episode) errorOf(err error) *dialect.Error {
	var limit *environment.LimitError
	var refused *environment.RequestError
	switch {
	case errors.As(err, &refused):
		return &dialect.Error{Kind: dialect.InvalidRequest, Message: refused.Message}
	case errors.As(err, &limit) && limit.Most > 0:
		return &dialect.Error{Kind: dialect.ContextLength, Tokens: limit.Tokens, Limit: limit.Most}
	case errors.As(err, &limit):
		return &dialect.Error{Kind: dialect.Quota, Message: "The episode has reached its limit of " + limit.Limit + "."}
	default:
		return &dialect.Error{Kind: dialect.Quota, Message: "The episode has ended."}
	}
}
