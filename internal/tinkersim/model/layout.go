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

// window returns the window that predicts the target in a sequence that is not cut into windows yet.
func (p targetPlace) window() window { return windowOf(p.position + len(p.native) - 1) }

// in returns the place within a window.
func (p targetPlace) in(w window) targetPlace {
	p.position -= w.start()
	return p
}

// appendSequences appends the sequences of the last datum.
//
// The first sequence is the datum's input. It has the log-probabilities of most targets: of targets with which the
// input continues, and of targets that are one native token. Any other target needs its native tokens except the last
// one after the tokens that precede it. For the last position they are appended to the input; elsewhere such a target
// gets a sequence of its own. These are ordered from the last position down, so that each shares the tokens before its
// target with the sequence before it. Sequences that are longer than a window are cut into windows.
func (b *BaseModel) appendSequences(p *prepared, tokens []int32) error {
	s, err := b.read(tokens)
	if err != nil {
		return err
	}
	index := len(p.datums) - 1
	d := p.datums[index]
	var places []targetPlace
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
				places = append(places, at)
				continue
			}
			w := at.window()
			branches = append(branches, slices.Concat(s.native[w.start():end], between))
			others = append(others, sequenceTargets{datum: index, places: []targetPlace{at.in(w)}})
		}
	}
	p.addWindows(s.native, index, places)
	p.sequences, p.targets = append(p.sequences, branches...), append(p.targets, others...)
	return nil
}

// addWindows appends the windows of a sequence, each with the targets that it predicts. The targets are given from the
// last to the first.
func (p *prepared) addWindows(native []int32, datum int, places []targetPlace) {
	windows := windowsOf(native)
	targets := make([]sequenceTargets, len(windows))
	for i := range targets {
		targets[i].datum = datum
	}
	for _, at := range slices.Backward(places) {
		w := at.window()
		targets[w].places = append(targets[w].places, at.in(w))
	}
	p.sequences, p.targets = append(p.sequences, windows...), append(p.targets, targets...)
}

func hasPrefix(tokens, prefix []int32) bool {
	return len(tokens) >= len(prefix) && slices.Equal(tokens[:len(prefix)], prefix)
}
