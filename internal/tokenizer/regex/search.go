// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package regex

import (
	"sync"
	"unicode/utf8"
)

// A search takes at most this many steps for a text before it continues with a memory. Known patterns take about ten
// for each byte.
const (
	stepsPerByte = 100
	stepsAtLeast = 50_000
)

// search looks for matches in one text.
type search struct {
	r     *Regexp
	text  string
	stack []frame
	steps int
	// memory is nil until steps have run out.
	memory *memory
}

// frame is the alternative that is tried when the current attempt fails.
type frame struct {
	pc, at int
	// low is the index down to which a repetition gives characters back; negative for the second branch of a split.
	low int
	// choice is one more than a choice of the memory all of whose attempts have failed when this frame is reached; 0 if
	// there is none.
	choice int
	inner  bool
}

var searches = sync.Pool{New: func() any { return new(search) }}

func newSearch(r *Regexp, text string) *search {
	s := searches.Get().(*search)
	s.r, s.text, s.stack, s.steps, s.memory = r, text, s.stack[:0], stepsPerByte*len(text)+stepsAtLeast, nil
	return s
}

func (s *search) release() {
	const keep = 1 << 16
	if cap(s.stack) > keep {
		s.stack = nil
	}
	s.r, s.text, s.memory = nil, "", nil
	searches.Put(s)
}

// find returns the first match from an index on.
func (s *search) find(from int) (start, end int, ok bool) {
	first := s.r.fast.first
	for start = from; start <= len(s.text); {
		if first == nil || first.at(s.text, start) > 0 {
			if end, ok = s.match(start); ok {
				return start, end, true
			}
		}
		if start == len(s.text) {
			break
		}
		if s.text[start] < utf8.RuneSelf {
			start++
			continue
		}
		_, size := utf8.DecodeRuneInString(s.text[start:])
		start += size
	}
	return 0, 0, false
}

// match returns the end of the match that begins at an index.
func (s *search) match(start int) (end int, ok bool) {
	if s.memory == nil {
		end, ok = s.run(s.r.fast, 0, start)
		if s.steps >= 0 {
			return end, ok
		}
		s.stack, s.memory = s.stack[:0], newMemory(s.r.steady, len(s.text))
	}
	return s.run(s.r.steady, 0, start)
}

// run runs a program from an instruction to its end. When steps run out, the result has no meaning.
func (s *search) run(p *program, pc, at int) (end int, ok bool) {
	base := len(s.stack)
	for s.steps >= 0 || s.memory != nil {
		s.steps--
		i := &p.code[pc]
		advanced := false
		switch i.op {
		case opEnd:
			return s.succeed(base, at), true
		case opSplit:
			end, known, failed := s.recall(i, at)
			if known && !failed {
				return s.succeed(base, end), true
			}
			if advanced = !known; advanced {
				s.choose(i, at)
				pc = i.x
			}
		case opJump:
			pc, advanced = i.x, true
		case opAtomic:
			if at, advanced = s.run(p, i.x, at); advanced {
				pc = i.y
			}
		case opLook:
			if s.looks(p, i, at) != i.not {
				pc, advanced = i.y, true
			}
		default:
			at, advanced = s.consume(i, pc, at)
			pc++
		}
		if advanced {
			continue
		}
		if pc, at, ok = s.retry(base); !ok {
			break
		}
	}
	return 0, false
}

// consume runs an instruction that consumes characters, or none.
func (s *search) consume(i *instruction, pc, at int) (next int, ok bool) {
	switch i.op {
	case opRune:
		if i.r < utf8.RuneSelf {
			if at < len(s.text) && s.text[at] == byte(i.r) {
				return at + 1, true
			}
			return at, false
		}
		r, size := utf8.DecodeRuneInString(s.text[at:])
		return at + size, r == i.r && size > 0
	case opSet:
		size := i.table.at(s.text, at)
		return at + size, size > 0
	case opRepeat:
		return s.repeat(i, pc, at)
	default:
		return at, anchored(i, s.text, at)
	}
}

// repeat consumes as much as possible, and remembers to give it back.
func (s *search) repeat(i *instruction, pc, at int) (next int, ok bool) {
	low, n := at, 0
	for ; n != i.most; n++ {
		if n == i.least {
			low = at
		}
		size := i.table.at(s.text, at)
		if size == 0 {
			break
		}
		at += size
	}
	s.steps -= n
	if n < i.least {
		return at, false
	}
	if n == i.least {
		low = at
	}
	if at > low {
		s.stack = append(s.stack, frame{pc: pc + 1, at: at, low: low})
	}
	return at, true
}

// choose pushes the second branch of a split.
func (s *search) choose(i *instruction, at int) {
	if s.memory != nil {
		s.stack = append(s.stack, frame{at: at, choice: i.choice + 1, inner: i.inner})
	}
	s.stack = append(s.stack, frame{pc: i.y, at: at, low: -1})
}

// retry returns the alternative to try next, from the top of the stack.
func (s *search) retry(base int) (pc, at int, ok bool) {
	for len(s.stack) > base {
		f := &s.stack[len(s.stack)-1]
		if f.choice > 0 {
			s.memory.fail(f.choice-1, f.at, f.inner)
			s.stack = s.stack[:len(s.stack)-1]
			continue
		}
		if f.low < 0 {
			s.stack = s.stack[:len(s.stack)-1]
			return f.pc, f.at, true
		}
		_, size := utf8.DecodeLastRuneInString(s.text[:f.at])
		f.at -= size
		pc, at = f.pc, f.at
		if at <= f.low {
			s.stack = s.stack[:len(s.stack)-1]
		}
		return pc, at, true
	}
	return 0, 0, false
}

// succeed ends a run. The choices that are still open lead to its end.
func (s *search) succeed(base, end int) int {
	if s.memory != nil {
		for _, f := range s.stack[base:] {
			if f.choice > 0 && f.inner {
				s.memory.succeed(f.choice-1, f.at, end)
			}
		}
	}
	s.stack = s.stack[:base]
	return end
}

func (s *search) recall(i *instruction, at int) (end int, known, failed bool) {
	if s.memory == nil {
		return 0, false, false
	}
	return s.memory.recall(i.choice, at, i.inner)
}

// looks reports whether one of the alternatives of a look-around matches.
func (s *search) looks(p *program, i *instruction, at int) bool {
	for _, l := range i.looks {
		start, back := at, l.back
		for ; back > 0 && start > 0; back-- {
			_, size := utf8.DecodeLastRuneInString(s.text[:start])
			start -= size
		}
		if back > 0 {
			continue
		}
		if _, ok := s.run(p, l.start, start); ok {
			return true
		}
	}
	return false
}
