// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Meter counts the tokens of the requests that clients make of a server. It identifies a request by its sampling
// session or model and its number, and counts it once, however often it is sent and whether or not its caller waits
// for the result. All methods are safe for concurrent use.
type Meter struct {
	config MeterConfig

	mu   sync.Mutex
	used spending.Usage
	// open are the requests whose outcome is not known, and tokens their maximum cost.
	open   map[requestKey]*openRequest
	tokens int64
	// answered are the newest requests that were counted, and order lists them, the oldest first.
	answered map[requestKey]bool
	order    []requestKey
	unnamed  int64
}

// MeterConfig configures a Meter. The zero value counts, and grants everything.
type MeterConfig struct {
	// Lifetime bounds the time for which the meter asks for the results of requests whose callers have left. If it is
	// nil, the meter does not ask for them.
	Lifetime context.Context
	// Grant is called before a request is sent, with the maximum of all tokens including the request. After an error the
	// request is not sent. nil grants everything.
	Grant func(ctx context.Context, tokens int64) error
}

// requestKey is a request of a sampling session or model.
type requestKey struct {
	of  string
	seq int64
}

// openRequest is a request whose outcome is not known.
type openRequest struct {
	// most is its maximum cost, in tokens.
	most int64
	// waiting counts the callers that wait for its outcome. unknown is set once one of them did not learn it.
	waiting int
	unknown bool
}

// mostAnswered is the number of requests that a meter remembers. The groups in progress at one worker have fewer
// requests.
const mostAnswered = 1 << 17

// NewMeter returns a meter at zero.
func NewMeter(config MeterConfig) *Meter {
	return &Meter{config: config, open: map[requestKey]*openRequest{}, answered: map[requestKey]bool{}}
}

// Used returns the usage of answered requests. Its unconfirmed tokens are the maximum cost of requests without a known
// outcome.
func (m *Meter) Used() spending.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.used
	used.UnconfirmedTokens = m.tokens
	return used
}

// Read returns the result of Used, and the values of accounts at the same moment.
func (m *Meter) Read(accounts ...*Account) (used spending.Usage, each []Account) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used = m.used
	used.UnconfirmedTokens = m.tokens
	for _, account := range accounts {
		each = append(each, *account)
	}
	return used, each
}

// Add counts usage outside of a client, such as the tokens of a judge elsewhere. The account may be nil.
func (m *Meter) Add(used spending.Usage, account *Account) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(used, account)
}

// add adds to the counters and to an account. The lock is held.
func (m *Meter) add(used spending.Usage, account *Account) {
	m.used = m.used.Add(used)
	if account != nil {
		account.Used = account.Used.Add(used)
	}
}

// Account is the usage for one purpose, such as a group of episodes. The lock of the meter guards it, and Read
// returns a copy.
type Account struct {
	// Used is the usage of answered requests.
	Used spending.Usage
	// Largest is the maximum cost of the largest request for one sample.
	Largest int64
}

// Use is the purpose of a request for samples.
type Use int

// The uses.
const (
	// UsePolicy is the use of requests that name no other.
	UsePolicy Use = iota
	// UseReference is the use by the reference of a KL penalty.
	UseReference
	// UseTeacher is the use by teachers.
	UseTeacher
	// UseJudge is the use by judges. The caller of a judge counts the answers itself.
	UseJudge
)

type (
	useKey     struct{}
	accountKey struct{}
)

// WithUse returns a context whose requests for samples are made for a use.
func WithUse(ctx context.Context, use Use) context.Context {
	return context.WithValue(ctx, useKey{}, use)
}

// WithAccount returns a context whose requests for samples belong to an account.
func WithAccount(ctx context.Context, account *Account) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

// charge is the cost of a request. A nil charge belongs to a request without cost.
type charge struct {
	key     requestKey
	use     Use
	account *Account // nil if there is none
	// cost is the part that is known before the answer, and most the maximum cost of the request.
	cost spending.Usage
	most int64
	// followed is set once only the meter waits for the result.
	followed bool
}

// chargeOfSample returns the charge of a request for samples.
func (m *Meter) chargeOfSample(ctx context.Context, r tinker.SampleRequest) *charge {
	if m == nil {
		return nil
	}
	prompt, _ := r.Prompt.TextTokens()
	c := &charge{cost: spending.Usage{PromptTokens: int64(len(prompt))}}
	c.use, _ = ctx.Value(useKey{}).(Use)
	c.account, _ = ctx.Value(accountKey{}).(*Account)
	c.most = c.cost.PromptTokens
	longest := int64(0)
	if r.SamplingParams.MaxTokens != nil {
		longest = int64(*r.SamplingParams.MaxTokens)
		c.most += int64(r.NumSamples) * longest
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.account != nil {
		c.account.Largest = max(c.account.Largest, c.cost.PromptTokens+longest)
	}
	if r.SeqID != nil && r.SamplingSession != "" {
		c.key = requestKey{r.SamplingSession, *r.SeqID}
		return c
	}
	m.unnamed--
	c.key.seq = m.unnamed
	return c
}

// chargeOfPass returns the charge of a pass over training data.
func (m *Meter) chargeOfPass(r tinker.ForwardBackwardRequest) *charge {
	if m == nil {
		return nil
	}
	tokens := int64(0)
	for _, datum := range r.Data {
		text, _ := datum.ModelInput.TextTokens()
		tokens += int64(len(text))
	}
	return &charge{key: requestKey{r.ModelID, r.SeqID}, cost: spending.Usage{TrainedTokens: tokens}, most: tokens}
}

// ask notes that a request is about to be sent, and asks for its grant.
func (m *Meter) ask(ctx context.Context, c *charge) error {
	m.begin(c)
	err := m.Reserve(ctx, 0)
	if err != nil {
		m.fail(c, false)
	}
	return err
}

// begin notes that a caller waits for the outcome of a request.
func (m *Meter) begin(c *charge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.open[c.key]
	if r == nil {
		r = &openRequest{}
		m.open[c.key] = r
	}
	m.tokens += max(0, c.most-r.most)
	r.most = max(r.most, c.most)
	r.waiting++
}

// Reserve asks for a grant of further tokens at once. It is for callers that know the total cost of their next
// requests.
func (m *Meter) Reserve(ctx context.Context, tokens int64) error {
	if m == nil || m.config.Grant == nil {
		return nil
	}
	return m.config.Grant(ctx, m.Used().Total()+tokens)
}

// answer counts an answered request: sampled is the number of sampled tokens, and cached the number of tokens of the
// prompt that the endpoint had in its cache.
func (m *Meter) answer(c *charge, sampled, cached int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.close(c)
	if m.answered[c.key] {
		return
	}
	m.answered[c.key] = true
	m.order = append(m.order, c.key)
	if len(m.order) > mostAnswered {
		delete(m.answered, m.order[0])
		m.order = m.order[1:]
	}
	cost := c.cost
	cost.SampledTokens, cost.CachedPromptTokens = sampled, max(0, min(cached, cost.PromptTokens))
	switch c.use {
	case UseReference:
		cost = spending.Usage{ReferenceTokens: cost.PromptTokens + sampled}
	case UseTeacher:
		cost = spending.Usage{TeacherTokens: cost.PromptTokens + sampled}
	case UseJudge:
		if !c.followed {
			return
		}
		cost = spending.Usage{JudgePromptTokens: cost.PromptTokens, JudgeSampledTokens: sampled}
	}
	m.add(cost, c.account)
}

// close ends an open request. The lock is held.
func (m *Meter) close(c *charge) {
	if r := m.open[c.key]; r != nil {
		m.tokens -= r.most
		delete(m.open, c.key)
	}
}

// fail notes that a request has failed, and whether the server may have executed it all the same.
func (m *Meter) fail(c *charge, mayHaveRun bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.open[c.key]
	if r == nil {
		return // it was answered by another
	}
	r.waiting--
	r.unknown = r.unknown || mayHaveRun
	if r.waiting == 0 && !r.unknown {
		m.close(c)
	}
}

// submitCharged submits an operation that costs something.
func (c *caller) submitCharged(ctx context.Context, req request, cost *charge) (pending, error) {
	if cost == nil {
		return c.submit(ctx, req)
	}
	if err := c.meter.ask(ctx, cost); err != nil {
		return pending{}, canceled(req.op, err)
	}
	p, err := c.submit(ctx, req)
	if err != nil {
		c.meter.fail(cost, mayBeExecuted(err))
		return pending{}, err
	}
	p.charge = cost
	return p, nil
}

// fetchCharged fetches the result of an operation that may cost something. If ctx ends first, the meter continues to
// ask for it.
func fetchCharged[T any](ctx context.Context, c *caller, p pending, decode func(response) (T, error)) (T, error) {
	value, err := fetchResult(ctx, c, p, decode)
	switch {
	case p.charge == nil:
	case err == nil:
		sampled, cached := tokensIn(value)
		c.meter.answer(p.charge, sampled, cached)
	case ctx.Err() != nil && c.meter.config.Lifetime != nil:
		followed := *p.charge
		followed.followed, p.charge = true, &followed
		lifetime := c.meter.config.Lifetime
		go func() {
			// The lifetime only ends with the process.
			value, err := fetchResult(lifetime, c, p, decode)
			if err != nil {
				c.meter.fail(p.charge, isOutcomeUnknown(err))
				return
			}
			sampled, cached := tokensIn(value)
			c.meter.answer(p.charge, sampled, cached)
		}()
	default:
		c.meter.fail(p.charge, isOutcomeUnknown(err))
	}
	return value, err
}

// followSample finds out the outcome of a request for samples whose caller left before the server confirmed the
// request: the request is sent again, which costs nothing more if the server has it.
func (c *caller) followSample(ctx context.Context, req request, cost *charge, err error,
	decode func(response) (tinker.SampleResult, error)) {
	if cost == nil || cost.key.seq < 0 || ctx.Err() == nil || !mayBeExecuted(err) || c.meter.config.Lifetime == nil {
		return
	}
	followed := *cost
	followed.followed = true
	go func() {
		// An error leaves the request open, as it is.
		if p, err := c.submitCharged(c.meter.config.Lifetime, req, &followed); err == nil {
			_, _ = fetchCharged(c.meter.config.Lifetime, c, p, decode)
		}
	}()
}

// isOutcomeUnknown reports whether an operation that has no result may have been executed: it may, unless the server
// says that it was invalid.
func isOutcomeUnknown(err error) bool { return CategoryFrom(err) != tinker.CategoryUser }

// tokensIn counts the tokens that were sampled for a result, and the tokens of the prompt that the endpoint had in its
// cache.
func tokensIn(result any) (sampled, cached int64) {
	if samples, ok := result.(tinker.SampleResult); ok {
		for _, sequence := range samples.Sequences {
			sampled += int64(len(sequence.Tokens))
		}
		cached = int64(samples.PromptCacheHitTokens)
	}
	return sampled, cached
}

// fetchChargedInBackground starts to fetch a result.
func fetchChargedInBackground[T any](ctx context.Context, c *caller, p pending,
	decode func(response) (T, error)) *Future[T] {
	return inBackground(p.op, func() (T, error) { return fetchCharged(ctx, c, p, decode) })
}
