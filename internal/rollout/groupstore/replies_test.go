// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package groupstore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// repliesOf returns which of ten requests of a group have a stored reply.
func repliesOf(t *testing.T, s *Store, key rl.Key) []int {
	t.Helper()
	var found []int
	for i := range 10 {
		reply, _, ok := s.Reply(key, rl.Digest{byte(i + 1)})
		if !ok {
			continue
		}
		if string(reply) != fmt.Sprintf("reply %d", i) {
			t.Errorf("request %d has the reply %q", i, reply)
		}
		found = append(found, i)
	}
	return found
}

func keepReplies(s *Store, key rl.Key, requests ...int) {
	for _, i := range requests {
		s.KeepReply(key, rl.Digest{byte(i + 1)}, fmt.Appendf(nil, "reply %d", i))
	}
}

func repliesFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+repliesEnding))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRepliesOutliveTheProcess checks that the replies of a process are found after it died at any byte of the last
// one, and that further replies are added behind them.
func TestRepliesOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	keepReplies(open(t, dir, 10, 100), train(1), 0, 1, 2)
	name := repliesFiles(t, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	next := open(t, dir, 10, 100)
	keepReplies(next, train(1), 3)
	for _, want := range []bool{true, false} {
		_, first, _ := next.Reply(train(1), rl.Digest{1})
		if _, own, _ := next.Reply(train(1), rl.Digest{4}); first != want || own {
			t.Errorf("inherited: got %v for a reply of an earlier process, and %v for one of its own, want %v and false",
				first, own, want)
		}
	}
	if got := repliesOf(t, next, train(1)); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("got the replies %v, want 0 to 3", got)
	}
	for cut := 1; cut <= recordHeader+len("reply 2"); cut++ {
		if err := os.WriteFile(name, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, 10, 100)
		keepReplies(s, train(1), 1, 3)
		for _, s := range []*Store{s, open(t, dir, 10, 100)} {
			if got := repliesOf(t, s, train(1)); !slices.Equal(got, []int{0, 1, 3}) {
				t.Fatalf("without the last %d bytes: got the replies %v, want 0, 1 and 3", cut, got)
			}
		}
	}
}

// TestRepliesOfOthersAreNotFound checks that groups do not share replies, and that a file that was changed is not
// used.
func TestRepliesOfOthersAreNotFound(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 10, 100)
	keepReplies(s, train(1), 0)
	other := train(1)
	other.Lineage = rl.Genesis("another")
	for _, key := range []rl.Key{other, train(2), evaluate(1)} {
		if got := repliesOf(t, s, key); got != nil {
			t.Errorf("%v has the replies %v of another group", key, got)
		}
	}
	keepReplies(s, other, 1)
	name := repliesPath(dir, train(1))
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		text[at] ^= 1
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		text[at] ^= 1
		s := open(t, dir, 10, 100)
		if got := repliesOf(t, s, train(1)); got != nil {
			t.Errorf("byte %d is another: got the replies %v", at, got)
		}
		if got := repliesOf(t, s, other); !slices.Equal(got, []int{1}) {
			t.Errorf("byte %d of another group's file: got the replies %v, want 1", at, got)
		}
	}
}

// TestRepliesAreRemoved checks that replies are removed once their group is stored or covered.
func TestRepliesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 10, 100)
	for _, key := range []rl.Key{train(1), train(2), train(7), evaluate(1)} {
		keepReplies(s, key, 0, 1)
	}
	add(t, s, train(7))
	if got := repliesOf(t, s, train(7)); got != nil {
		t.Errorf("a stored group has the replies %v", got)
	}
	s.Cover(2, []exchange.Evaluation{{Digest: "plan", Lineage: policy}})
	if diff := cmp.Diff([]string{repliesPath(dir, train(2))}, repliesFiles(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	s.Cover(8, nil)
	if s.replyBytes != 0 || len(repliesFiles(t, dir)) != 0 {
		t.Errorf("%d bytes and %v are left of covered groups", s.replyBytes, repliesFiles(t, dir))
	}
}

// TestRepliesHaveABound checks that replies take no more than their share of the disk, so that the rest is left to
// groups, and that no replies are kept without a disk.
func TestRepliesHaveABound(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 10, 8)
	for i := range 100 {
		s.KeepReply(train(1), rl.Digest{byte(i)}, make([]byte, 100))
	}
	if s.replyBytes == 0 || s.replyBytes > groupBytes {
		t.Errorf("replies have %d bytes, want some and at most %d", s.replyBytes, groupBytes)
	}
	if again := open(t, dir, 10, 8); again.replyBytes != s.replyBytes {
		t.Errorf("the next process counts %d bytes, want %d", again.replyBytes, s.replyBytes)
	}
	memory := open(t, "", 10, 0)
	keepReplies(memory, train(1), 0)
	if got := repliesOf(t, memory, train(1)); got != nil {
		t.Errorf("a store without a disk has the replies %v", got)
	}
}
