// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// baseKey begins the keys of branches without a role.
const baseKey = "agent"

// The causes for which a request does not continue the tokens of a conversation. One further cause is the role of the
// first message that differs. The metric of a cause has the prefix brokenBy.
const (
	brokenBy       = "prefix_broken_"
	brokenByStart  = "start"
	brokenByRepeat = "repeat"
	brokenByFork   = "fork"
	brokenByTools  = "tools"
	brokenByFormat = "format"
	metricBranches = "branches"
)

// node is a reply that an agent was given.
type node struct {
	// parent is the reply that the request extends; nil if there is none.
	parent *node
	role   string
	// own are the messages of the prompt after the parent's reply. For each of them, means has the meaning of the
	// conversation up to it.
	own   []chat.Message
	means []meaning
	// reply is the message that the agent was given, and kept the same message as the conversation stores it.
	reply, kept chat.Message
	malformed   string
	tools       []chat.Tool
	toolsSay    meaning
	request     Request
	sample      Sample
	// tokens are the tokens of the prompt, as many as prompt says, followed by the tokens of the reply. A reply shares the
	// array of tokens with the replies that it extends.
	tokens []int32
	prompt int
	// text is the text of a raw prompt followed by its reply, and through the number of its tokens. The text of a later
	// prompt may extend it.
	text     string
	through  int
	rendered renderer.Rendered
	// depth counts the replies before this one.
	depth int
	stop  string
}

// said returns the node's own messages and its reply.
func (n *node) said() []chat.Message { return append(slices.Clone(n.own), n.kept) }

// conversation returns all messages up to the node's reply.
func (n *node) conversation() []chat.Message {
	var path []*node
	for at := n; at != nil; at = at.parent {
		path = append(path, at)
	}
	var all []chat.Message
	for _, at := range slices.Backward(path) {
		all = append(all, at.said()...)
	}
	return all
}

// promptText returns the text of a raw prompt.
func (n *node) promptText() string {
	if len(n.own) == 0 {
		return ""
	}
	return n.own[0].Content
}

// store copies the tokens of the prompt and the reply. Earlier replies with the same first tokens then use the same
// array.
func (n *node) store() {
	n.prompt = len(n.request.Prompt)
	n.tokens = slices.Concat(n.request.Prompt, n.sample.Tokens)
	n.alias(n.tokens)
	for at := n.parent; at != nil && hasPrefix(n.tokens, at.tokens); at = at.parent {
		at.alias(n.tokens[:len(at.tokens):len(at.tokens)])
	}
}

func (n *node) alias(tokens []int32) {
	n.tokens = tokens
	n.request.Prompt = tokens[:n.prompt:n.prompt]
	n.sample.Tokens = tokens[n.prompt:]
	n.rendered.IDs = n.request.Prompt
}

func hasPrefix(tokens, prefix []int32) bool {
	return len(tokens) >= len(prefix) && slices.Equal(tokens[:len(prefix)], prefix)
}

// breaks returns the cause for which the node does not continue the tokens of its parent; empty if it does.
func (n *node) breaks() string {
	switch {
	case n.parent == nil || hasPrefix(n.request.Prompt, n.parent.tokens):
		return ""
	case n.toolsSay != n.parent.toolsSay:
		return brokenByTools
	default:
		return brokenByFormat
	}
}

// compare orders nodes by the content of the request, and equal requests by their number. The time of arrival has no
// effect on the order.
func (n *node) compare(other *node) int {
	return cmp.Or(
		cmp.Compare(n.role, other.role),
		bytes.Compare(n.request.Content[:], other.request.Content[:]),
		cmp.Compare(n.request.Repeat, other.request.Repeat),
	)
}

// branches are the replies that an agent was given, as a tree.
type branches struct {
	// replies has the replies in the order of compare, by the meaning of the conversation up to the reply. Conversations
	// of one meaning may have different tokens; requests of an agent do not tell them apart.
	replies map[meaning][]*node
	nodes   []*node
	// asked counts the requests so far by their content.
	asked map[rl.Digest]int
}

// extended returns the last reply that a conversation contains, and the number of messages up to that reply.
func (b *branches) extended(messages []chat.Message, means []meaning) (parent *node, through int) {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != chat.RoleAssistant {
			continue
		}
		if known := b.replies[means[i]]; len(known) > 0 {
			return known[0], i + 1
		}
	}
	return nil, 0
}

// extendedText returns the raw reply that a text extends: the text begins with the prompt and the reply. The longest
// one counts.
func (b *branches) extendedText(role, text string) *node {
	var longest *node
	for _, n := range b.nodes {
		if n.text == "" || n.role != role || len(text) < len(n.text) || text[:len(n.text)] != n.text {
			continue
		}
		if longest == nil || len(n.text) > len(longest.text) ||
			len(n.text) == len(longest.text) && n.compare(longest) < 0 {
			longest = n
		}
	}
	return longest
}

// extendedTokens returns the raw reply that tokens extend: they begin with the tokens of the prompt and the reply. The
// longest one counts.
func (b *branches) extendedTokens(role string, tokens []int32) *node {
	for n := len(tokens); n > 0; n-- {
		if known := b.replies[rawMeaning(role, tokens[:n])]; len(known) > 0 {
			return known[0]
		}
	}
	return nil
}

// add adds a reply. says is the meaning of the conversation that ends with it.
func (b *branches) add(n *node, says meaning) {
	b.nodes = append(b.nodes, n)
	if b.replies == nil {
		b.replies = map[meaning][]*node{}
	}
	at, _ := slices.BinarySearchFunc(b.replies[says], n, (*node).compare)
	b.replies[says] = slices.Insert(b.replies[says], at, n)
}

// branch is a conversation: replies that extend each other.
type branch struct {
	key   string
	nodes []*node
	// broken is the cause for which the branch does not continue another one; empty for the branch that begins with the
	// fewest messages.
	broken string
}

// list returns the branches with their causes. If several replies extend the same reply, the first of them in the order
// of compare continues its branch, and each of the others begins a branch. Branches of a role are numbered in the order
// of their first replies. The only branch of an episode has no key.
func (b *branches) list() []branch {
	children := map[*node][]*node{}
	for _, n := range b.nodes {
		children[n.parent] = append(children[n.parent], n)
	}
	var heads []*node
	for parent, list := range children {
		slices.SortFunc(list, (*node).compare)
		if parent != nil {
			list = list[1:]
		}
		heads = append(heads, list...)
	}
	slices.SortFunc(heads, (*node).compare)
	var all []branch
	number := map[string]int{}
	for _, head := range heads {
		number[head.role]++
		one := branch{nodes: []*node{head}}
		if len(heads) > 1 {
			one.key = fmt.Sprintf("%s/%d", cmp.Or(head.role, baseKey), number[head.role])
		}
		for next := children[head]; len(next) > 0; next = children[next[0]] {
			one.nodes = append(one.nodes, next[0])
		}
		all = append(all, one)
	}
	explain(all)
	return all
}

// explain fills in the causes of branches. It compares a branch that extends no reply with the branches that begin with
// fewer messages.
func explain(all []branch) {
	var roots []*branch
	for i := range all {
		if all[i].nodes[0].parent == nil {
			roots = append(roots, &all[i])
		} else {
			all[i].broken = brokenByFork
		}
	}
	slices.SortStableFunc(roots, func(a, b *branch) int { return cmp.Compare(len(a.nodes[0].own), len(b.nodes[0].own)) })
	seen := map[meaning]bool{}
	for i, one := range roots {
		if i > 0 {
			one.broken = one.nodes[0].differs(seen)
		}
		for _, n := range one.nodes {
			for _, says := range n.means {
				seen[says] = true
			}
		}
	}
}

// metricsOf counts the branches, and for each cause the requests that did not continue the tokens of a conversation.
func metricsOf(all []branch) map[string]float64 {
	metrics := map[string]float64{metricBranches: float64(len(all))}
	for _, one := range all {
		if one.broken != "" {
			metrics[brokenBy+one.broken]++
		}
		for _, n := range one.nodes {
			if cause := n.breaks(); cause != "" {
				metrics[brokenBy+cause]++
			}
		}
	}
	return metrics
}

// differs returns the cause for which a conversation extends no other one.
func (n *node) differs(seen map[meaning]bool) string {
	first := slices.IndexFunc(n.means, func(says meaning) bool { return !seen[says] })
	switch {
	case first == 0 || len(n.own) == 0:
		return brokenByStart
	case first < 0 || first >= len(n.own): // Only its own reply is new.
		return brokenByRepeat
	default:
		return n.own[first].Role
	}
}
