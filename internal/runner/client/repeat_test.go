// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

func TestWhatFollowsACall(t *testing.T) {
	failure := func(code protocol.Code) error {
		return &Failure{Err: &protocol.Error{Code: code}, Evidence: &protocol.Evidence{}}
	}
	cases := map[string]struct {
		err           error
		shared, alone Next
	}{
		"a result":                       {nil, Done, Done},
		"a process that died":            {failure(protocol.CodeDied), RepeatAlone, Permanent},
		"a limit":                        {failure(protocol.CodeLimit), RepeatAlone, Permanent},
		"a breach of the protocol":       {failure(protocol.CodeProtocol), RepeatAlone, Permanent},
		"memory":                         {failure(protocol.CodeOutOfMemory), RepeatAlone, Permanent},
		"a lost session":                 {failure(protocol.CodeSessionLost), RepeatAlone, Permanent},
		"an exception":                   {failure(protocol.CodeException), Permanent, Permanent},
		"None":                           {failure(protocol.CodeNoValue), Permanent, Permanent},
		"a question that failed":         {failure(protocol.CodeQuestionFailed), Permanent, Permanent},
		"a code of a later version":      {failure("later"), Permanent, Permanent},
		"a program that cannot restart":  {failure(protocol.CodeImportError), Unavailable, Unavailable},
		"a start that takes too long":    {failure(protocol.CodeStartTimeout), Unavailable, Unavailable},
		"a lost connection to a gateway": {failure(protocol.CodeGatewayLost), Unavailable, Unavailable},
		"a full queue":                   {failure(protocol.CodeBusy), Unavailable, Unavailable},
		"a program that was stopped":     {failure(protocol.CodeCancelled), Unavailable, Unavailable},
		"a lost connection":              {fmt.Errorf("%w: reset", ErrLost), Unavailable, Unavailable},
		"a wrapped failure":              {fmt.Errorf("calling: %w", failure(protocol.CodeDied)), RepeatAlone, Permanent},
		"the end of the context":         {context.Canceled, Unavailable, Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := After(tc.err, false); got != tc.shared {
				t.Errorf("in a shared process: got %d, want %d", got, tc.shared)
			}
			if got := After(tc.err, true); got != tc.alone {
				t.Errorf("in a process of its own: got %d, want %d", got, tc.alone)
			}
		})
	}
}

func TestRepetitionGetsTheSameAnswers(t *testing.T) {
	asked := 0
	answers := NewAnswers(func(_ context.Context, q Question) (json.RawMessage, error) {
		asked++
		if string(q.Params) == "failing" {
			return nil, errors.New("no answer")
		}
		return json.RawMessage(fmt.Sprint(asked)), nil
	})
	play := func(questions ...string) string {
		ask, got := answers.try(), ""
		for _, q := range questions {
			answer, err := ask(t.Context(), Question{Method: "chat", Params: json.RawMessage(q)})
			got += string(answer)
			if err != nil {
				got += "-"
			}
		}
		return got
	}
	if got, want := play("a", "b", "a", "failing"), "123-"; got != want {
		t.Errorf("the first try: got %s, want %s", got, want)
	}
	if got, want := play("b", "a", "a", "failing", "a"), "213-6"; got != want {
		t.Errorf("the second try: got %s, want %s: the answers of the first, in the order of each question", got, want)
	}
	if got := answers.Unused(); got != 0 {
		t.Errorf("%d answers are unused by a try that asked for all", got)
	}
	play("b")
	if got, want := answers.Unused(), 3; got != want {
		t.Errorf("%d answers are unused, want those to three questions a", got)
	}
}
