// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// work is what one sequence is computed for: targets of a datum.
type work struct {
	datum  int
	places []place
}

// place is where a target's log-probability is found.
type place struct {
	// target is its index within the datum.
	target int
	// own are the own tokens that it is read as; the first is predicted at the sequence's position, the
	// others at those that follow.
	own      []int32
	position int
}

// layOut adds the sequences of the last datum.
//
// The first sequence is the datum's input, and most targets are found there: a target that the input goes
// on with, and each that is one own token. Any other target needs its own tokens but the last one behind
// what precedes it. For the last position they are put behind the input; elsewhere such a target gets a
// sequence of its own. These come from the last position down, so that each shares what precedes its
// target with the sequence before.
func (b *BaseModel) layOut(p *prepared, tokens []int32) error {
	s, err := b.read(tokens)
	if err != nil {
		return err
	}
	index := len(p.datums) - 1
	d := p.datums[index]
	main := work{datum: index}
	var branches [][]int32
	var others []work
	for position := len(tokens) - 1; position >= 0; position-- {
		end := s.ends[position]
		for target := (position+1)*d.perPosition - 1; target >= position*d.perPosition; target-- {
			own := b.vocabulary.Spell(d.targets[target])
			if own == nil {
				return userErrorf("input %s: token %d is not in the vocabulary", inputTargets, d.targets[target])
			}
			at := place{target: target, own: own, position: end - 1}
			between := own[:len(own)-1]
			if end == len(s.own) {
				s.own = append(s.own, between...)
			}
			if hasPrefix(s.own[end:], between) {
				main.places = append(main.places, at)
				continue
			}
			branches = append(branches, slices.Concat(s.own[:end], between))
			others = append(others, work{datum: index, places: []place{at}})
		}
	}
	slices.Reverse(main.places)
	p.sequences = append(append(p.sequences, s.own), branches...)
	p.work = append(append(p.work, main), others...)
	return s.checkAll(p.sequences[len(p.sequences)-1-len(branches):])
}

// checkAll says whether all sequences fit the context.
func (s spelling) checkAll(sequences [][]int32) error {
	for _, sequence := range sequences {
		if err := s.checkLength(len(sequence)); err != nil {
			return err
		}
	}
	return nil
}

func hasPrefix(tokens, prefix []int32) bool {
	return len(tokens) >= len(prefix) && slices.Equal(tokens[:len(prefix)], prefix)
}
