// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

// The protocol model: manager, learner attempts, workers, the Tinker server's durable side and
// the row store. Training operations inside a step are one transition here; wire.go opens them up.

const (
	maxA = 3 // attempts
	maxW = 2 // workers
	maxL = 2 // lag
	maxS = 8 // slots
)

// Program counter of a learner attempt.
const (
	pAbsent uint8 = iota
	pStart
	pClaimed // its claim (or its new model) is visible
	pCleared // lower attempts' models are unloaded
	pChosen  // base checkpoint chosen, not loaded
	pOpening // its opening state is being saved
	pServe   // loop idle: gathers the groups of step Step
	pTrained // fb + optim submitted, replies outstanding
	pClean   // replies clean
	pSaving  // state save submitted, reply outstanding
	pSaved   // state save clean
	pChecked // no higher claim seen after the save
	pReady   // row durable
	pPublished
	pFinal
	pDone
	pDead
	pFenced
)

var pcName = []string{"absent", "start", "claimed", "cleared", "chosen", "opening", "serve", "trained", "clean",
	"saving", "saved", "checked", "ready", "published", "final", "done", "dead", "fenced"}

// Save, row, fence, order and refill rules.
const (
	savePiped = 0 // submitted right behind optim_step, before the replies are known (as written)
	saveClean = 1 // submitted after every reply of the step is clean

	rowAfter = 0 // after the state save's reply (as written)
	rowAhead = 1 // durable before the state save is submitted

	needNone   = 0
	needByLin  = 1 // a state counts only if a row with its step and lineage exists
	needByCkpt = 2 // ... a row written for exactly this checkpoint (attempt, incarnation)

	fenceNone   = 0
	fenceUnload = 1 // create own model, list models, unload lower ones, list states
	fenceClaim  = 2 // write claim, list states, record base; after each save look for a higher claim

	orderName    = 0 // step, cursor, attempt: as the name sorts
	orderStep    = 1 // step, attempt, incarnation
	orderAttempt = 2 // attempt, incarnation, step

	refillAny     = 0 // slots leased ahead on a guess; a group of another version in the window is accepted
	refillDiscard = 1 // slots leased ahead on a guess; a group of the wrong version is discarded
	refillCertain = 2 // a slot is leased only when the membership of the batches before it is certain
	refillPerStep = 3 // each step has a slot range of its own, refills included

	retNone   = 0
	retNewest = 1 // anything older than the newest own state is deleted
	retWindow = 2 // anything older than newest-L
)

// PCfg is one configuration of the protocol model.
type PCfg struct {
	Name             string
	K, G, L, W, S, A int
	Cap              int  // groups a worker can hold, 0 = no limit
	MakeRoom         bool // a full worker gives up its highest slot for a lower one that is missing

	// fault budgets
	Zomb, WCr, Fail, Flake, Exp, SmpExp, Susp, Rst int
	DetTomb                                        uint // slots that are tombstones at any policy
	InitFrom                                       bool // version 0 is a foreign checkpoint that may be deleted (uses Exp)
	Foreign                                        bool // another run's checkpoint is in the listing

	// rules
	Save, Row, Need, Fence, Order, Refill, Ret int
	Opening                                    bool // first act of an attempt: its base saved under its own name
	Base                                       bool // with claims: the base is recorded, of earlier attempts only it counts
	S0                                         bool // a fresh run saves step 0 first
	PubPiped                                   bool // sampler save pipelined behind optim_step
	SSVersion                                  bool // sampling session keyed by version alone
	ByManager                                  bool // resume from the manager's ledger
	Ack                                        bool // covered_index waits for the manager's ledger
	WaitHello                                  bool // no lease before every live worker said Hello
	KnowPar                                    bool // the lineages of the window are known on resume
	RunFilter                                  bool // listing is filtered by run
	Reopen                                     bool // a version that cannot be had again makes the learner list again

	Spare    int  // states kept beyond the window, for a newest state that cannot be loaded
	CovSpare bool // covered_index trails by the spare states

	CheckLast bool // with rowAfter and claims: the row is written before the claims are looked at
	PreferRow bool // a step done again takes the tombstones of the newest row written for it
	Fallback  bool // a version lost for good is replaced by the next newer one
	Early     bool // the new version is announced as soon as the replies are clean, before row and state
	Eval      int  // an evaluation of this version is due (0 = none)
	EvalKeep  bool // retention spares a state whose evaluation has no row yet
	EvalBlock bool // the step after an evaluation is not trained before the evaluation's row is durable

	Cost bool // track what is bought twice
	Only map[Code]bool
}

// Learner is one attempt's process.
type Learner struct {
	PC, Inc, Step, Cur uint8
	Lin                [maxL + 1]uint8 // lineage of versions Step, Step-1, ...
	W                  uint8           // content of its model
	NCur, NLin, NW     uint8
	Out                uint8 // 1 clean, 2 dirty; the learner learns it with the replies
	Pend               uint8 // checkpoint id queued on its model
	Old                uint8 // the same on a model it abandoned
	Sv                 uint8 // 0 none 1 queued 2 completed 3 refused
	Model              uint8 // 0 none 1 alive 2 unloaded
	Cov, Base, Bad     uint8
	Last               uint8 // newest own covered checkpoint
	Com                uint8 // committed a step since it opened
	Ann                uint8 // version Step+1 is announced though not committed
	Acc                [maxS]uint8
}

// Worker holds finished groups.
type Worker struct {
	Epoch  uint8
	Stored [maxS]uint8
}

type set32 [32]uint8

func (b *set32) has(i uint8) bool { return b[i>>3]&(1<<(i&7)) != 0 }
func (b *set32) add(i uint8)      { b[i>>3] |= 1 << (i & 7) }
func (b *set32) del(i uint8)      { b[i>>3] &^= 1 << (i & 7) }

// PS is a state of the protocol model.
type PS struct {
	L                                     [maxA + 1]Learner // index = attempt
	Wk                                    [maxW]Worker
	Ck                                    set32 // checkpoint ids on the server
	Smp                                   set32 // sampler ids on the server
	Rows                                  set32 // row ids
	SS                                    [8]uint8
	Claim                                 uint8 // attempts with a visible claim or model
	CBase                                 [maxA + 1]uint8
	Cur                                   uint8 // manager: newest attempt
	Ledger                                uint8 // manager: newest checkpoint reported
	Phase                                 uint8 // 1 complete
	Zomb, WCr, Fail, Flake, Exp, SExp, Su uint8
	Rst                                   uint8
	InitGone                              uint8
	// history variables
	Opened, CovLin, Viol, Rebuy, Disc, ZBuy uint8
	EvRows                                  set32 // lineages whose evaluation has a row
	Drop, Bought                            set32
}

// Invariant codes of the protocol model.
const (
	cPoisonLoaded Code = iota + 1
	cFinalWeights
	cNondet
	cRowMissing
	cRebuyCovered
	cZombieUsed
	cDeletedNeeded
	cRegress
	cForeign
	cTie
	cRebuy
	cChain
	cDiscard
	cZombieCovers
	cRedoStep
	cZombieBuys
)

var codeNames = map[Code]string{
	cPoisonLoaded:  "I1 poisoned state resumed from",
	cFinalWeights:  "I1 final weights are not the lineage's",
	cNondet:        "I2 final lineage depends on the schedule",
	cRowMissing:    "I3 a row of the final lineage is missing",
	cRebuyCovered:  "I4 a group dropped as covered is needed again",
	cZombieUsed:    "I5 a zombie's save is resumed from",
	cDeletedNeeded: "I5 a checkpoint is deleted that the next resume needs",
	cRegress:       "I5 a resume leaves the lineage that was covered",
	cForeign:       "I9 another run's checkpoint is resumed from",
	cTie:           "I9 two different checkpoints tie for newest",
	cRebuy:         "cost: a group is bought twice",
	cChain:         "I1 final lineage skips, repeats or mixes versions",
	cDiscard:       "cost: a finished group is discarded",
	cZombieCovers:  "I5 a fenced-out learner tells workers to drop",
	cRedoStep:      "cost: a saved step is trained again",
	cZombieBuys:    "cost: a fenced-out learner has groups sampled",
}

// Proto is the model.
type Proto struct {
	c        PCfg
	groups   *intern[group]
	lins     *intern[lineage]
	cks      *intern[ckpt]
	smps     *intern[sampler]
	rows     *intern[rowKey]
	expected uint8

	maxRebuy, maxDisc, maxZBuy uint8
	finals                     map[string]int
}

// view is the learner's loop state as its workers see it: one step on once the next version is announced.
func (p *Proto) view(l *Learner) Learner {
	v := *l
	if l.Ann == 1 {
		v.Step++
		for j := maxL; j > 0; j-- {
			v.Lin[j] = v.Lin[j-1]
		}
		v.Lin[0], v.Cur = l.NLin, l.NCur
	}
	return v
}

func newProto(c PCfg) *Proto {
	p := &Proto{c: c}
	p.groups = newIntern(group{Slot: 255}) // id 0 = none
	p.lins = newIntern(lineage{Parent: 255})
	p.cks = newIntern(ckpt{Att: 255})
	p.smps = newIntern(sampler{Lin: 255})
	p.rows = newIntern(rowKey{Lin: 255})
	if c.Flake == 0 {
		p.expected = p.undisturbed()
	}
	return p
}

// lineage ids: 0 is v0.

func (p *Proto) spSlots() int { // slots per step in per-step mode
	return p.c.S / p.c.K
}

func (p *Proto) undisturbed() uint8 {
	chain := []uint8{0}
	cur := 0
	for k := 0; k < p.c.K; k++ {
		v := k - p.c.L
		if v < 0 {
			v = 0
		}
		if p.c.Refill == refillPerStep {
			cur = k * p.spSlots()
		}
		var mem []byte
		for i := cur; i < p.c.S && len(mem) < p.c.G; i++ {
			cur = i + 1
			if p.c.DetTomb&(1<<i) != 0 {
				continue
			}
			mem = append(mem, p.groups.id(group{Slot: uint8(i), Claimed: chain[v], Actual: chain[v]}))
		}
		if len(mem) < p.c.G {
			panic("too few slots")
		}
		chain = append(chain, p.lins.id(lineage{Parent: chain[k], Step: uint8(k + 1), Members: string(mem)}))
	}
	return chain[p.c.K]
}

// Init implements Model.
func (p *Proto) Init() PS {
	var s PS
	s.Cur = 0
	s.Zomb, s.WCr, s.Fail, s.Flake = uint8(p.c.Zomb), uint8(p.c.WCr), uint8(p.c.Fail), uint8(p.c.Flake)
	s.Exp, s.SExp, s.Su, s.Rst = uint8(p.c.Exp), uint8(p.c.SmpExp), uint8(p.c.Susp), uint8(p.c.Rst)
	s.Smp.add(p.smps.id(sampler{0, 0}))
	if p.c.Foreign {
		s.Ck.add(p.cks.id(ckpt{Att: 1, Step: uint8(p.c.K - 1), Cur: 1, Lin: 250, W: 250, Foreign: true}))
	}
	return s
}

// Check implements Model.
func (p *Proto) Check(s *PS) Code {
	p.maxRebuy = max(p.maxRebuy, s.Rebuy)
	p.maxDisc = max(p.maxDisc, s.Disc)
	p.maxZBuy = max(p.maxZBuy, s.ZBuy)
	c := Code(s.Viol)
	if c != 0 && p.c.Only != nil && !p.c.Only[c] {
		return 0
	}
	return c
}

// Done implements Model.
func (p *Proto) Done(s *PS) bool { return s.Phase == 1 }

// CodeName implements Model.
func (p *Proto) CodeName(c Code) string { return codeNames[c] }

func (p *Proto) viol(s *PS, c Code) {
	if p.c.Only != nil && !p.c.Only[c] {
		return
	}
	if s.Viol == 0 {
		s.Viol = uint8(c)
	}
}

func running(pc uint8) bool { return pc >= pStart && pc <= pFinal }
func serving(pc uint8) bool { return pc >= pServe && pc <= pFinal }
