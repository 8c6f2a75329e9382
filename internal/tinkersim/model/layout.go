// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// sequenceTargets are the targets of a datum whose log-probabilities one sequence gives.
type sequenceTargets struct {
	datum  int
	places []targetPlace
}

// targetPlace says where in a sequence a target's log-probability is found.
type targetPlace struct {
	// target is its index within the datum.
	target int
	// native are the native tokens of the target; the first is predicted at position in the sequence, the others
	// at the positions that follow.
	native   []int32
	position int
}

// appendSequences appends the sequences of the last datum.
//
// The first sequence is the datum's input. It gives the log-probabilities of most targets: of those that the
// input continues with, and of those that are one native token. Any other target needs its native tokens except
// the last one after the tokens that precede it. For the last position they are appended to the input; elsewhere
// such a target gets a sequence of its own. These are ordered from the last position down, so that each shares
// the tokens before its target with the sequence before it.
func (b *BaseModel) appendSequences(p *prepared, tokens []int32) error {
	s, err := b.read(tokens)
	if err != nil {
		return err
	}
	index := len(p.datums) - 1
	d := p.datums[index]
	main := sequenceTargets{datum: index}
	var branches [][]int32
	var others []sequenceTargets
	for position := len(tokens) - 1; position >= 0; position-- {
		end := s.ends[position]
		for target := (position+1)*d.perPosition - 1; target >= position*d.perPosition; target-- {
			native := b.vocabulary.Spell(d.targets[target])
			if native == nil {
				return userErrorf("input %s: token %d is not in the vocabulary", inputTargets, d.targets[target])
			}
			at := targetPlace{target: target, native: native, position: end - 1}
			between := native[:len(native)-1]
			if end == len(s.native) {
				s.native = append(s.native, between...)
			}
			if hasPrefix(s.native[end:], between) {
				main.places = append(main.places, at)
				continue
			}
			branches = append(branches, slices.Concat(s.native[:end], between))
			others = append(others, sequenceTargets{datum: index, places: []targetPlace{at}})
		}
	}
	slices.Reverse(main.places)
	p.sequences = append(append(p.sequences, s.native), branches...)
	p.targets = append(append(p.targets, main), others...)
	return s.checkAll(p.sequences[len(p.sequences)-1-len(branches):])
}

// checkAll checks that all sequences fit into the context.
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
