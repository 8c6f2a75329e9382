// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// roleNames are the headers of the roles. The format does not support tools.
var roleNames = map[string]string{chat.RoleSystem: "System:", chat.RoleUser: "User:", chat.RoleAssistant: "Assistant:"}

// roleColonEnd writes messages as role_colon does, "User: text" and "Assistant: text<|end|>", but replies end with a
// token, as the simulator's model was trained to write them. A prompt ends in "Assistant:". Header, text, end token and
// separator are tokenised apart.
//
// The next prompt always extends prompt and reply, provided that the message has its sampled ids. A reply without the
// end token gets one that was not sampled.
type roleColonEnd struct{ format.Profile }

func newRoleColonEnd(tokens tokenizer.Tokenizer, options Options) (format.Family, error) {
	if options.End == "" {
		return nil, errors.New("the format needs the name of the token that ends a reply (Options.End)")
	}
	v, err := format.NewVocabulary(tokens, options.Match, options.End)
	if err != nil {
		return nil, err
	}
	stop := renderer.Stop{Tokens: []int32{v.ID(options.End)}}
	return &roleColonEnd{format.Profile{Vocabulary: v, Stop: stop, End: options.End, History: format.Kept}}, nil
}

// Write implements format.Family.
func (r *roleColonEnd) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	header, ok := roleNames[m.Role]
	if !ok {
		return fmt.Errorf("the format knows the roles system, user and assistant: %w", renderer.ErrUnsupported)
	}
	if len(m.Calls) > 0 || m.CallID != "" {
		return renderer.ErrUnsupported
	}
	text, err := format.PlainText(m)
	if err != nil {
		return err
	}
	out.Text(header).Body()
	out.Text(" " + text).Cut()
	if m.Role == chat.RoleAssistant {
		out.Token(r.End).Tail()
	}
	out.Text(separator)
	return nil
}

// Open implements format.Family.
func (r *roleColonEnd) Open(out *format.Writer, _ format.Place) {
	out.Text(roleNames[chat.RoleAssistant])
}

// WriteSampled implements format.Family.
func (r *roleColonEnd) WriteSampled(out *format.Writer, at format.Place) bool {
	r.Profile.WriteSampled(out, at)
	out.Text(separator)
	return true
}

// Read implements format.Family. White space around the text does not count as content.
func (r *roleColonEnd) Read(sampled []int32) (renderer.Parsed, error) {
	content, parsed := sampled, renderer.Parsed{Ending: renderer.Truncated}
	if at := slices.Index(sampled, r.ID(r.End)); at >= 0 {
		content, parsed.Ending = sampled[:at], renderer.Stopped
		if at != len(sampled)-1 {
			parsed.Ending, parsed.Problem = renderer.Malformed, "the reply continues after "+r.End
		}
	}
	text, err := r.Tokens.Decode(content)
	if err != nil {
		return renderer.Parsed{}, fmt.Errorf("decoding its text: %w", err)
	}
	parsed.Message.Content = strings.TrimSpace(text)
	return parsed, nil
}
