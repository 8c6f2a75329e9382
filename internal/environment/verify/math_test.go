// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// mathReply is a reply to a problem with a gold answer, whether it is right, and the verdict of Math-Verify 0.9.0.
type mathReply struct {
	Gold       string `json:"gold"`
	Reply      string `json:"reply"`
	Want       bool   `json:"want"`
	MathVerify bool   `json:"mathVerify"`
	Why        string `json:"why"`
}

func mathReplies(t *testing.T) []mathReply {
	t.Helper()
	data, err := os.ReadFile("testdata/math_replies.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []mathReply
	for line := range strings.Lines(string(data)) {
		var c mathReply
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// TestMathAgainstMathVerify checks the two bounds that docs/rewards.md names: Math accepts at most as many wrong
// replies as Math-Verify, and rejects at most 1.5 times as many right replies.
func TestMathAgainstMathVerify(t *testing.T) {
	var accepts, rejects, theirAccepts, theirRejects, right int
	all := mathReplies(t)
	for _, c := range all {
		score, err := Math{}.Grade(t.Context(), answer(c.Gold), says(c.Reply))
		if err != nil {
			t.Fatalf("Grade(%q, %q): %v", c.Gold, c.Reply, err)
		}
		switch earned := score.Reward == 1; {
		case c.Want && !earned:
			rejects++
			t.Logf("the gold answer %q rejects the right reply %q: %s", c.Gold, c.Reply, c.Why)
		case !c.Want && earned:
			accepts++
			t.Logf("the gold answer %q accepts the wrong reply %q: %s", c.Gold, c.Reply, c.Why)
		}
		switch {
		case c.Want && !c.MathVerify:
			theirRejects++
		case !c.Want && c.MathVerify:
			theirAccepts++
		}
		if c.Want {
			right++
		}
	}
	t.Logf("false rejects: %d of %d, Math-Verify %d; false accepts: %d of %d, Math-Verify %d",
		rejects, right, theirRejects, accepts, len(all)-right, theirAccepts)
	if accepts > theirAccepts {
		t.Errorf("accepted %d wrong replies, want at most the %d of Math-Verify", accepts, theirAccepts)
	}
	if 2*rejects > 3*theirRejects {
		t.Errorf("rejected %d right replies, want at most 1.5 times the %d of Math-Verify", rejects, theirRejects)
	}
	if right < 200 || len(all)-right < 70 {
		t.Errorf("the cases have %d right and %d wrong replies, want at least 200 and 70", right, len(all)-right)
	}
}

// TestZeroIsNoAnswerToOtherProblems grades the answer 0 against gold answers of published data sets that 0 once
// matched.
func TestZeroIsNoAnswerToOtherProblems(t *testing.T) {
	for _, gold := range []string{
		`\ln 10`, `\ln 12`, `\ln 15`, `\log_2 10`, `\log_2 12`, `\sin 10^\circ`, `\cos 20^\circ`, `\cos 40^\circ`,
		`\frac{1}{2004!}`,
		`$I=-10 e^{-30 t}(\cos 40 t+18 \sin 40 t)$`, `$I=-\frac{200}{3} e^{-10 t} \sin 30 t$`,
		`$I=-e^{-40 t}(2 \cos 30 t-86 \sin 30 t)$`, `$I=e^{-20 t}(2 \cos 40 t-101 \sin 40 t)$`,
		`$I_{p}=-\frac{1}{3}(\cos 10 t+2 \sin 10 t)$`, `$I_{p}=-\frac{45}{52}(\cos 30 t+8 \sin 30 t)$`,
		`$I_{p}=\frac{20}{123}(17 \sin 100 t-11 \cos 100 t)$`, `$I_{p}=\frac{3}{13}(8 \cos 50 t-\sin 50 t)$`,
	} {
		for text, want := range map[string]float64{`\boxed{0}`: 0, `\boxed{x=0}`: 0, `\boxed{0^\circ}`: 0,
			`\boxed{` + gold + `}`: 1} {
			got, err := Math{}.Grade(t.Context(), answer(gold), says(text))
			if err != nil || got.Reward != want {
				t.Errorf("with the gold answer %q the reply %q earns %v, %v, want %v", gold, text, got.Reward, err, want)
			}
		}
	}
}
