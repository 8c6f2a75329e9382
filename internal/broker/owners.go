// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker/journal"
)

// Owner is the run that made an object.
type Owner struct {
	UID       string `json:"run"`
	Namespace string `json:"namespace"`
}

// kind is the kind of an object at the server.
type kind string

const (
	session kind = "session"
	model   kind = "model"
	sampler kind = "sampler"
	future  kind = "future"
)

// record names the owner of an object.
type record struct {
	Kind kind   `json:"kind"`
	ID   string `json:"id"`
	Owner
	// Op is the operation whose result a future stands for.
	Op string `json:"op,omitempty"`
	// Base is the base model of a model or sampling session, or of the object of a future; "" if it is not known.
	Base string `json:"base,omitempty"`
	// Made is when the object was made, in seconds since 1970.
	Made int64 `json:"made"`
}

// A future is forgotten deliveredLife after its result was delivered, so that a client that lost the reply can ask
// again, and in any case after futureLife. Sessions and sampling sessions are forgotten after ownerlessLife if their
// run is not named any more. The owners of models stay: checkpoints outlive their run.
const (
	deliveredLife = 5 * time.Minute
	futureLife    = 24 * time.Hour
	ownerlessLife = 7 * 24 * time.Hour
)

// object is a record in force.
type object struct {
	record
	segment   int
	delivered bool
}

// owners knows the owner of each object. It is safe for concurrent use.
type owners struct {
	journal *journal.Journal[record]
	now     func() time.Time

	mu   sync.RWMutex
	byID map[kind]map[string]*object
	// delivered are the futures whose result was delivered, the earliest first.
	delivered []deliveredFuture
}

type deliveredFuture struct {
	id string
	at time.Time
}

// openOwners reads the records of a folder.
func openOwners(dir string, now func() time.Time) (*owners, error) {
	o := &owners{now: now, byID: map[kind]map[string]*object{session: {}, model: {}, sampler: {}, future: {}}}
	var err error
	o.journal, err = journal.Open(journal.Config[record]{Dir: dir, Name: "owners", Apply: o.apply, Live: o.live})
	return o, err
}

// apply puts records in force. A later record of an object takes the place of an earlier one: the server has made the
// object for another run since.
func (o *owners) apply(records []record, segment int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range records {
		of := o.byID[r.Kind]
		if of == nil {
			continue // a later version of the broker made it
		}
		if known := of[r.ID]; known != nil && known.record == r {
			known.segment = segment
			continue
		}
		of[r.ID] = &object{record: r, segment: segment}
	}
}

// live returns the records of a segment that still count, and forgets the futures that do not.
func (o *owners) live(segment int) []record {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetDelivered()
	var records []record
	oldest := o.now().Add(-futureLife).Unix()
	for kind, of := range o.byID {
		for id, object := range of {
			switch {
			case object.segment != segment:
			case kind == future && object.Made < oldest:
				delete(of, id)
			default:
				records = append(records, object.record)
			}
		}
	}
	return records
}

// add records objects that the server made for a run. It returns once the records are durable.
func (o *owners) add(ctx context.Context, records ...record) error {
	var fresh []record
	o.mu.RLock()
	for _, r := range records {
		if known := o.byID[r.Kind][r.ID]; known == nil || known.Owner != r.Owner || known.Op != r.Op {
			fresh = append(fresh, r)
		}
	}
	o.mu.RUnlock()
	if len(fresh) == 0 {
		return nil
	}
	return o.journal.Append(ctx, fresh...)
}

// get returns the record of an object.
func (o *owners) get(kind kind, id string) (record, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	object := o.byID[kind][id]
	if object == nil {
		return record{}, false
	}
	return object.record, true
}

// deliver notes that the result of a future was delivered.
func (o *owners) deliver(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetDelivered()
	if object := o.byID[future][id]; object != nil && !object.delivered {
		object.delivered = true
		o.delivered = append(o.delivered, deliveredFuture{id, o.now()})
	}
}

// forgetDelivered forgets futures whose result was delivered long ago. The lock is held.
func (o *owners) forgetDelivered() {
	until := o.now().Add(-deliveredLife)
	n := 0
	for n < len(o.delivered) && o.delivered[n].at.Before(until) {
		id := o.delivered[n].id
		if object := o.byID[future][id]; object != nil && object.delivered {
			delete(o.byID[future], id)
		}
		n++
	}
	o.delivered = o.delivered[n:]
}

// sweep forgets records that no longer count, so that the records of years fit into memory.
func (o *owners) sweep(isNamed func(Owner) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetDelivered()
	now := o.now()
	for kind, life := range map[kind]time.Duration{future: futureLife, session: ownerlessLife, sampler: ownerlessLife} {
		oldest := now.Add(-life).Unix()
		for id, object := range o.byID[kind] {
			if object.Made < oldest && (kind == future || !isNamed(object.Owner)) {
				delete(o.byID[kind], id)
			}
		}
	}
}

// madeBy returns the ids of the objects of a kind that some runs made, the newest first.
func (o *owners) madeBy(kind kind, mayUse func(Owner) bool) []string {
	o.mu.RLock()
	var made []record
	for _, object := range o.byID[kind] {
		if mayUse(object.Owner) {
			made = append(made, object.record)
		}
	}
	o.mu.RUnlock()
	slices.SortFunc(made, func(a, b record) int {
		return cmp.Or(cmp.Compare(b.Made, a.Made), strings.Compare(a.ID, b.ID))
	})
	ids := make([]string, len(made))
	for i, r := range made {
		ids[i] = r.ID
	}
	return ids
}

// isEmpty reports whether no session and no model is recorded.
func (o *owners) isEmpty() bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.byID[session])+len(o.byID[model]) == 0
}
