// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Label implements Model.
func (p *Proto) Label(a Act, from, to *PS) string {
	switch a.Kind {
	case aStart:
		if a.B == 1 {
			return fmt.Sprintf("manager starts attempt %d while attempt %d still runs", a.A, a.A-1)
		}
		return fmt.Sprintf("manager starts attempt %d", a.A)
	case aCrash:
		return fmt.Sprintf("learner %d CRASHES (%s)", a.A, pcName[from.L[a.A].PC])
	case aClaim:
		if p.c.Fence == fenceUnload {
			return fmt.Sprintf("learner %d creates its model", a.A)
		}
		return fmt.Sprintf("learner %d writes its claim", a.A)
	case aUnload:
		return fmt.Sprintf("learner %d lists models, unloads those of lower attempts", a.A)
	case aList:
		return fmt.Sprintf("learner %d lists, chooses %s", a.A, p.ckName(a.B))
	case aLoad:
		switch a.B {
		case 1:
			return fmt.Sprintf("learner %d: base is missing, lists again", a.A)
		case 2:
			return fmt.Sprintf("learner %d: its model is missing, starts over", a.A)
		}
		return fmt.Sprintf("learner %d loads %s", a.A, p.ckName(a.C))
	case aOpened:
		return fmt.Sprintf("learner %d: opening state is saved", a.A)
	case aAttach:
		return fmt.Sprintf("worker says Hello to learner %d, offers %s", a.B, p.storedNames(&from.Wk[a.A]))
	case aPlay:
		return fmt.Sprintf("worker of learner %d finishes %s", a.B, p.groupName(a.C))
	case aTrain:
		x := map[uint8]string{1: "server: all done", 2: "server: all done, a REPLY IS LOST", 3: "server: ONE CHUNK FAILS, optim_step applies the rest"}[a.C]
		pip := ""
		if p.c.Save == savePiped {
			pip = " + save_state " + p.ckName(to.L[a.A].Pend)
		}
		return fmt.Sprintf("learner %d submits step %d: fb+optim%s -> %s; %s", a.A, from.L[a.A].Step, pip, p.linName(a.B), x)
	case aReply:
		if a.B == 2 {
			return fmt.Sprintf("learner %d learns the step is not clean, throws its model away", a.A)
		}
		return fmt.Sprintf("learner %d: replies are clean", a.A)
	case aRow:
		if a.B == 1 && p.c.Row == rowAfter {
			return fmt.Sprintf("learner %d writes the row of L%d", a.A, from.L[a.A].NLin)
		}
		if a.B == 0 && p.c.Row == rowAhead {
			return fmt.Sprintf("learner %d writes the row of L%d", a.A, from.L[a.A].NLin)
		}
		return fmt.Sprintf("learner %d continues", a.A)
	case aSubmit:
		return fmt.Sprintf("learner %d submits save_state %s", a.A, p.ckName(to.L[a.A].Pend))
	case aExec:
		return fmt.Sprintf("server completes save of %s", p.ckName(a.B))
	case aOldExec:
		return fmt.Sprintf("server completes save of %s (abandoned model)", p.ckName(a.B))
	case aSaved:
		if a.B == 1 {
			return fmt.Sprintf("learner %d: REPLY of the save is LOST, throws its model away", a.A)
		}
		return fmt.Sprintf("learner %d: save is clean", a.A)
	case aCheck:
		if a.B == 1 {
			return fmt.Sprintf("learner %d sees a higher claim and stops", a.A)
		}
		return fmt.Sprintf("learner %d sees no higher claim", a.A)
	case aPublish:
		return fmt.Sprintf("learner %d publishes sampler of L%d", a.A, from.L[a.A].NLin)
	case aAdvance:
		return fmt.Sprintf("learner %d is at step %d, covered_index %d", a.A, to.L[a.A].Step, to.L[a.A].Cov)
	case aCover:
		return fmt.Sprintf("worker of learner %d drops %s below covered_index %d", a.B, p.storedNames(&from.Wk[a.A]), a.C)
	case aDelete:
		return fmt.Sprintf("learner %d deletes %s", a.A, p.ckName(a.B))
	case aExpire:
		return fmt.Sprintf("server EXPIRES %s", p.ckName(a.A))
	case aInitGone:
		return "initFrom checkpoint EXPIRES"
	case aSmpExpire:
		return fmt.Sprintf("server EXPIRES sampler of L%d", a.A)
	case aWCrash:
		return fmt.Sprintf("worker CRASHES, loses %s", p.storedNames(&from.Wk[a.A]))
	case aHeartbeat:
		return fmt.Sprintf("heartbeat: manager's ledger = %s", p.ckName(to.Ledger))
	case aRepub:
		return fmt.Sprintf("learner %d makes the sampler of L%d again", a.A, a.B)
	case aVerdict:
		return fmt.Sprintf("learner %d reports %s", a.A, p.linName(from.L[a.A].Lin[0]))
	case aSuspend:
		return fmt.Sprintf("SUSPEND: learner %d drains, all workers go", a.A)
	case aRestart:
		return "server RESTARTS: models and queues are lost"
	case aEval:
		return fmt.Sprintf("learner %d: evaluation row of L%d is durable", a.A, a.B)
	case aDrop:
		return fmt.Sprintf("a full worker gives up %s", p.groupName(a.B))
	case aGone:
		if a.B > 0 {
			return fmt.Sprintf("learner %d: a version is lost for good, %s", a.A, []string{"", "lists again", "takes the next newer one"}[a.B])
		}
		return fmt.Sprintf("learner %d: its model is missing, starts over", a.A)
	}
	return "?"
}

func (p *Proto) storedNames(w *Worker) string {
	out := ""
	for _, g := range w.Stored {
		if g != 0 {
			if out != "" {
				out += ", "
			}
			out += p.groupName(g)
		}
	}
	if out == "" {
		return "nothing"
	}
	return out
}
