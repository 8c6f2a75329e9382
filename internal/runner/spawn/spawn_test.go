// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// calls writes lines to the program and returns its answers.
func calls(t *testing.T, command []string, messages ...protocol.Message) []protocol.Message {
	t.Helper()
	config, err := json.Marshal(Config{Command: command})
	if err != nil {
		t.Fatal(err)
	}
	var in, out bytes.Buffer
	for _, m := range append([]protocol.Message{{Type: protocol.TypeHello, Config: config}}, messages...) {
		if err := json.NewEncoder(&in).Encode(m); err != nil {
			t.Fatal(err)
		}
	}
	Main(&in, &out)
	var answers []protocol.Message
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var m protocol.Message
		if err := decoder.Decode(&m); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, m)
	}
	return answers
}

func run(t *testing.T, script string, params Params) Result {
	t.Helper()
	encoded, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	answers := calls(t, []string{"sh", "-c", script},
		protocol.Message{Type: protocol.TypeCall, ID: 7, Method: Method, Scratch: t.TempDir(), Params: encoded})
	var result Result
	if len(answers) != 2 || answers[1].ID != 7 || json.Unmarshal(answers[1].Value, &result) != nil {
		t.Fatalf("answers are %+v", answers)
	}
	return result
}

func TestCommands(t *testing.T) {
	cases := map[string]struct {
		script string
		want   Result
	}{
		"output, variables and files": {`echo "$KEY"; cat "$TASK_FILE"; printf 0.5 > result.json`,
			Result{Output: "secret\n{}", Files: map[string]string{"result.json": "0.5"}}},
		"an exit code":            {`echo first >&2; echo last >&2; exit 3`, Result{Exit: 3, Last: "last"}},
		"what it leaves behind":   {`echo ok; sleep 60 &`, Result{Output: "ok\n"}},
		"a signal":                {`kill -9 $$`, Result{Exit: -1}},
		"a link in place of file": {`ln -s /etc/passwd result.json`, Result{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.script, Params{Env: map[string]string{"KEY": "secret", "TASK_FILE": "$(DIR)/task.json"},
				Files: map[string]string{"task.json": "{}"}, Read: []string{"result.json"}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	if got := run(t, `head -c 3000000 /dev/zero | tr '\0' x`, Params{}); len(got.Output) != mostOutput {
		t.Errorf("%d bytes of output are kept, want %d", len(got.Output), mostOutput)
	}
}

func TestCommandsThatDoNotExist(t *testing.T) {
	answers := calls(t, []string{"no-such-program"})
	if len(answers) != 1 || answers[0].Type != protocol.TypeFailed ||
		!strings.Contains(answers[0].Error.Message, "no-such-program") {
		t.Errorf("answers are %+v, want one that it does not start", answers)
	}
}
