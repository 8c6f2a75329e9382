// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

const (
	// burst is the time for which unused requests accumulate, so that a late timer loses none.
	burst = 250 * time.Millisecond
	// noticed is how long a request has to wait for its run to count as throttled.
	noticed = 100 * time.Millisecond
	// remembered is how long a run counts as active after its last request, and as throttled after its last wait.
	remembered = time.Minute
	// mostWaiting and mostBytes limit the waiting requests of a run, by number and by size. Further requests are refused
	// at once.
	mostWaiting = 1000
	mostBytes   = 32 << 20
)

// Request asks for a turn.
type Request struct {
	// Run is the UID of the run.
	Run string
	// Sample says that it is a request for samples. All others are operations, which keep their order.
	Sample bool
	// Bytes is the size of the body, which is held while the request waits.
	Bytes int64
}

// waiter is a request that waits.
type waiter struct {
	Request
	since, until time.Time
	// ready is closed once the request has its turn or is refused. retryAfter is not 0 if it is refused.
	ready      chan struct{}
	retryAfter time.Duration
	// decided is called before ready is closed; it may be nil.
	decided func()
}

func (w *waiter) decide() {
	if w.decided != nil {
		w.decided()
	}
	close(w.ready)
}

// run is a run that waits, has unfinished samples, or did so lately.
type run struct {
	weight float64
	// finish is the virtual time of its next turn, if it does not pause before.
	finish              float64
	operations, samples []*waiter
	bytes               int64
	unfinished          int
	asked, waited       time.Time
}

func (r *run) waiting() int { return len(r.operations) + len(r.samples) }

// head returns the request whose turn is next in the run, or nil.
func (r *run) head() *waiter {
	if len(r.operations) > 0 {
		return r.operations[0]
	}
	if len(r.samples) > 0 {
		return r.samples[0]
	}
	return nil
}

// core decides which run is next. It reads no clock: its caller passes the time, which does not go back.
type core struct {
	limits   endpoint.Limits
	patience time.Duration
	weights  map[string]int
	runs     map[string]*run
	pace     pace
	// virtual is the virtual time of the newest turn.
	virtual float64
	// credit is how many requests may be forwarded at the time filled.
	credit     float64
	filled     time.Time
	unfinished int
}

func newCore(limits endpoint.Limits, patience time.Duration) *core {
	c := &core{patience: patience, runs: map[string]*run{}}
	c.setLimits(limits)
	return c
}

func (c *core) setLimits(limits endpoint.Limits) {
	if limits != c.limits || c.pace.rate == 0 {
		c.limits = limits
		c.pace.setLimit(limits.RequestsPerSecond)
	}
}

// setWeights sets the weights of runs; others have 1.
func (c *core) setWeights(weights map[string]int) {
	c.weights = weights
	for uid, r := range c.runs {
		r.weight = c.weightOf(uid)
	}
}

func (c *core) weightOf(uid string) float64 { return float64(max(1, c.weights[uid])) }

func (c *core) run(uid string) *run {
	r := c.runs[uid]
	if r == nil {
		r = &run{weight: c.weightOf(uid)}
		c.runs[uid] = r
	}
	return r
}

// ask queues a request.
func (c *core) ask(now time.Time, request Request) *waiter {
	w := &waiter{Request: request, since: now, until: now.Add(c.patience), ready: make(chan struct{})}
	r := c.run(request.Run)
	r.asked = now
	if r.waiting() >= mostWaiting || r.waiting() > 0 && r.bytes+request.Bytes > mostBytes {
		r.waited = now
		c.refuse(w, r)
		return w
	}
	r.bytes += request.Bytes
	if request.Sample {
		r.samples = append(r.samples, w)
	} else {
		r.operations = append(r.operations, w)
	}
	return w
}

// leave removes a request from its queue, and reports whether it was there.
func (c *core) leave(w *waiter) bool {
	r := c.run(w.Run)
	queue := &r.operations
	if w.Sample {
		queue = &r.samples
	}
	i := slices.Index(*queue, w)
	if i < 0 {
		return false
	}
	*queue = slices.Delete(*queue, i, i+1)
	r.bytes -= w.Bytes
	return true
}

// refuse refuses a request. The request may be repeated after the time in which the waiting requests of its run have
// their turns, at the run's share of the rate.
func (c *core) refuse(w *waiter, r *run) {
	share := r.weight / c.weight(func(r *run) bool { return r.waiting() > 0 || r.unfinished > 0 }, r)
	seconds := 1.0
	if rate := c.pace.rate * share; !math.IsInf(rate, 1) {
		seconds = min(max(1, math.Ceil(float64(r.waiting())/rate)), 30)
	}
	w.retryAfter = time.Duration(seconds) * time.Second
	w.decide()
}

// weight sums the weights of the runs for which counts is true, and of own in any case.
func (c *core) weight(counts func(*run) bool, own *run) (sum float64) {
	for _, r := range c.runs {
		if r == own || counts(r) {
			sum += r.weight
		}
	}
	return sum
}

// next grants turns to requests, and refuses requests that have waited too long. It returns the time of the next call;
// zero if the next call is due only after a change.
func (c *core) next(now time.Time) (wake time.Time) {
	c.pace.pass(now)
	c.expire(now)
	rate := c.pace.rate
	if c.filled.IsZero() {
		c.filled = now
		c.credit = 1
	}
	c.credit = min(c.credit+now.Sub(c.filled).Seconds()*rate, max(1, rate*burst.Seconds()))
	c.filled = now
	if math.IsInf(rate, 1) {
		c.credit = math.Inf(1)
	}
	for c.credit >= 1 {
		r, virtual := c.choose()
		if r == nil {
			break
		}
		c.grant(now, r)
		c.virtual = virtual
	}
	return c.wakeAt(now)
}

// grant lets the next request of a run proceed.
func (c *core) grant(now time.Time, r *run) {
	w := r.head()
	c.leave(w)
	if now.Sub(w.since) >= noticed {
		r.waited = now
	}
	r.finish = max(c.virtual, r.finish) + 1/r.weight
	c.credit--
	if w.Sample {
		r.unfinished++
		c.unfinished++
	}
	w.decide()
}

// choose returns the run that is next, or nil if no run may have a turn, and the virtual time of that turn. The
// virtual time is that of the run that is furthest behind, which may be another run if an operation goes first.
func (c *core) choose() (best *run, virtual float64) {
	var earliest float64
	virtual = math.Inf(1)
	places := c.places()
	ahead := c.ahead()
	for _, r := range c.runs {
		head := r.head()
		if head == nil || head.Sample && !places.has(r) {
			continue
		}
		at := max(c.virtual, r.finish)
		virtual = min(virtual, at)
		if !head.Sample {
			at -= ahead
		}
		if best == nil || at < earliest || at == earliest && head.since.Before(best.head().since) {
			best, earliest = r, at
		}
	}
	return best, virtual
}

// ahead is the head start of operations over samples: the virtual time that passes in a second.
func (c *core) ahead() float64 {
	if math.IsInf(c.pace.rate, 1) {
		return 0
	}
	weight := c.weight(func(r *run) bool { return r.waiting() > 0 }, nil)
	return c.pace.rate / max(1, weight)
}

// places are the places of unfinished samples.
type places struct {
	limit, weight float64
	free          int
	// claimed is the number of places that waiting runs have a claim to.
	claimed int
}

func (c *core) places() places {
	p := places{limit: float64(c.limits.UnfinishedSamples), free: c.limits.UnfinishedSamples - c.unfinished}
	if p.limit == 0 {
		return p
	}
	p.weight = c.weight(func(r *run) bool { return len(r.samples) > 0 || r.unfinished > 0 }, nil)
	for _, r := range c.runs {
		p.claimed += p.claim(r)
	}
	return p
}

// claim returns how many more places a run wants within its share.
func (p places) claim(r *run) int {
	if len(r.samples) == 0 {
		return 0
	}
	share := int(math.Ceil(p.limit * r.weight / p.weight))
	return max(0, min(share-r.unfinished, len(r.samples)))
}

// has reports whether there is a place for a sample of a run.
func (p places) has(r *run) bool {
	return p.limit == 0 || p.free > 0 && (p.claim(r) > 0 || p.free > p.claimed)
}

// expire refuses requests that have waited too long, and forgets runs.
func (c *core) expire(now time.Time) {
	for uid, r := range c.runs {
		for _, queue := range []*[]*waiter{&r.operations, &r.samples} {
			for len(*queue) > 0 && !now.Before((*queue)[0].until) {
				w := (*queue)[0]
				c.leave(w)
				r.waited = now
				c.refuse(w, r)
			}
		}
		if head := r.head(); head != nil && now.Sub(head.since) >= noticed {
			r.waited = now
		}
		if r.waiting() == 0 && r.unfinished == 0 && now.Sub(r.asked) > 2*remembered {
			delete(c.runs, uid)
		}
	}
}

// wakeAt returns when next has to be called if nothing changes before; zero if it need not be called.
func (c *core) wakeAt(now time.Time) (wake time.Time) {
	for _, r := range c.runs {
		for _, queue := range [][]*waiter{r.operations, r.samples} {
			if len(queue) > 0 && (wake.IsZero() || queue[0].until.Before(wake)) {
				wake = queue[0].until
			}
		}
	}
	if wake.IsZero() || c.credit >= 1 {
		return wake
	}
	ready := now.Add(time.Duration(math.Ceil((1 - c.credit) / c.pace.rate * float64(time.Second))))
	if ready.Before(wake) {
		return ready
	}
	return wake
}

// finish frees the place of a sample.
func (c *core) finish(uid string) {
	if r := c.runs[uid]; r != nil && r.unfinished > 0 {
		r.unfinished--
		c.unfinished--
	}
}

// resume takes a place for a sample that was forwarded before.
func (c *core) resume(now time.Time, uid string) {
	r := c.run(uid)
	r.asked = now
	r.unfinished++
	c.unfinished++
}

// throttled returns the runs that waited in the last minute, with the shares of those that were active.
func (c *core) throttled(now time.Time) []endpoint.Throttled {
	within := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) < remembered }
	weight := c.weight(func(r *run) bool { return within(r.asked) || r.waiting() > 0 || r.unfinished > 0 }, nil)
	var all []endpoint.Throttled
	for uid, r := range c.runs {
		if within(r.waited) {
			all = append(all, endpoint.Throttled{UID: uid, Share: min(1, r.weight/max(r.weight, weight)), Waiting: r.waiting()})
		}
	}
	slices.SortFunc(all, func(a, b endpoint.Throttled) int { return compare(a.UID, b.UID) })
	return all
}
