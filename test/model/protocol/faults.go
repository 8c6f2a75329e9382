// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// faults are the faults of the server and the actions of people: expiry, suspension, restart.
type faults struct{ *rules }

func (p *faults) emit(x *successors) {
	p.expire(x)
	p.expireSamplers(x)
	p.suspend(x)
	p.restart(x)
}

// expire deletes a checkpoint of the run, or the checkpoint that the run was initialised from.
func (p *faults) expire(x *successors) {
	s := x.From
	if s.Expiries == 0 {
		return
	}
	p.checkpoints.each(&s.Checkpoints, func(id uint8, _ checkpoint) {
		t := x.Copy()
		t.Expiries--
		t.Checkpoints.remove(id)
		x.Fault(stateExpired, id)
	})
	if p.config.InitFrom && s.InitialMissing == 0 && s.Opened > 0 {
		t := x.Copy()
		t.Expiries--
		t.InitialMissing = 1
		x.Fault(initialExpired)
	}
}

func (p *faults) expireSamplers(x *successors) {
	s := x.From
	if s.SamplerExpiries == 0 {
		return
	}
	p.samplers.each(&s.Samplers, func(id uint8, weights sampler) {
		t := x.Copy()
		t.SamplerExpiries--
		t.Samplers.remove(id)
		x.Fault(samplerExpired, weights.Lineage)
	})
}

// suspend drains the learner and takes all workers away.
func (p *faults) suspend(x *successors) {
	s := x.From
	if s.Suspensions == 0 || s.Attempt == 0 || int(s.Attempt) >= p.config.Attempts {
		return
	}
	if phase := s.Learners[s.Attempt].Phase; phase < atStart || phase > atServe {
		return
	}
	t := x.Copy()
	t.Suspensions--
	t.Learners[s.Attempt].end(dead)
	t.Workers = [maxWorkers]Worker{}
	x.Fault(suspended, s.Attempt)
}

// restart restarts the server, which loses models and queues.
func (p *faults) restart(x *successors) {
	s := x.From
	if s.Restarts == 0 {
		return
	}
	t := x.Copy()
	t.Restarts--
	for n := 1; n <= int(s.Attempt); n++ {
		l := &t.Learners[n]
		l.ModelState, l.Abandoned = modelNone, 0
		if l.Save == saveQueued {
			l.Save = saveRefused
		}
		if !running(l.Phase) {
			*l = Learner{Phase: l.Phase}
		}
	}
	x.Fault(serverRestarted)
}
