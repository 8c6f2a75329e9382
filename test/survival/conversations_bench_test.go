// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// turnTokens is the approximate number of tokens that a turn adds: 20 turns have about 32,000.
const turnTokens = 1580

// BenchmarkConversations plays 2,000 conversations of 20 turns at once in one worker process of one core. They end at
// 32,000 tokens of Qwen3's vocabulary. The work of a turn should follow from the turn's new tokens: late/early is the
// CPU time of a turn in the second half over the CPU time of a turn in the first half, where conversations are a third
// as long.
func BenchmarkConversations(b *testing.B) {
	tokens, err := tokenizer.Parse(qwenTokenizer(b))
	if err != nil {
		b.Fatal(err)
	}
	words := 1
	for len(tokens.AppendEncode(nil, longText(&orstest.Session{}, words), tokenizer.Literal)) < turnTokens {
		words++
	}
	load := sessionLoad{
		sessions: benchSize(b, "BENCH_CONVERSATIONS", 2000), turns: 20, tool: 20 * time.Millisecond, sample: 12 * time.Second,
		text: func(s *orstest.Session) string { return longText(s, words) },
	}
	s := newSessionFixture(b, newQwenFixture(b), qwenReply(b), load)
	half, all := int64(load.sessions*load.turns/2), int64(load.sessions*load.turns)
	for b.Loop() {
		worker := s.start()
		s.waitForTurns(int64(load.sessions))
		began := processSeconds(b, worker)
		first := s.turns.Load()
		s.waitForTurns(half)
		middle := processSeconds(b, worker)
		s.waitForTurns(all)
		end := processSeconds(b, worker)
		early, late := (middle-began)/float64(half-first), (end-middle)/float64(all-half)
		b.ReportMetric(1e6*early, "early-cpu-µs/turn")
		b.ReportMetric(1e6*late, "late-cpu-µs/turn")
		b.ReportMetric(late/early, "late/early")
		b.ReportMetric(float64(peak(b, worker))/1024, "MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// waitForTurns waits until the environment has had this many calls of its tool.
func (s *sessionFixture) waitForTurns(turns int64) {
	for deadline := time.Now().Add(15 * time.Minute); s.turns.Load() < turns; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.b.Fatalf("%d of %d turns were played", s.turns.Load(), turns)
		}
	}
}

// longText returns a text of count words, which differs from the text of each other call of a tool.
func longText(s *orstest.Session, count int) string {
	words := strings.Fields("the of value list returns error index search result page table while under which count " +
		"after line open")
	random := rand.New(rand.NewPCG(uint64(s.Index), uint64(s.Calls)))
	var text strings.Builder
	fmt.Fprintf(&text, "Result %d of task %d:", s.Calls, s.Index)
	for range count {
		text.WriteByte(' ')
		text.WriteString(words[random.IntN(len(words))])
	}
	return text.String()
}
