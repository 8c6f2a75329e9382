// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// TestTemplateWithToolsOfThePage declares a tool and reads a call by the template in docs/agents.md for agents that are
// tried on the simulator.
func TestTemplateWithToolsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "inline: |-\n")
	if !found {
		t.Fatal("docs/agents.md has no inline template")
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var lines []string
	for line := range strings.Lines(text) {
		inside, ok := strings.CutPrefix(line, indent)
		if !ok {
			break
		}
		lines = append(lines, inside)
	}
	r, err := ForModel(t.Context(), nil, contract.Model{Name: tinkersim.ModelName, Renderer: contract.RendererTemplate,
		Template: &contract.Template{Text: strings.TrimSuffix(strings.Join(lines, ""), "\n")}})
	if err != nil {
		t.Fatal(err)
	}
	call := "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>"
	var reply []int32
	for _, b := range []byte(call) {
		reply = append(reply, int32(b))
	}
	parsed, err := r.Parse(append(reply, 256)) // the end of a turn
	if err != nil {
		t.Fatal(err)
	}
	want := []chat.ToolCall{{Name: "add", Arguments: `{"a": 1}`}}
	for i := range parsed.Message.Calls {
		parsed.Message.Calls[i].ID = ""
	}
	if diff := cmp.Diff(want, parsed.Message.Calls); diff != "" {
		t.Errorf("calls of %q (-want +got):\n%s", call, diff)
	}
	tools := []chat.Tool{{Name: "add", Description: "adds", Parameters: []byte(`{"type":"object"}`)}}
	if _, err := r.Prompt(renderer.Conversation{Messages: []chat.Message{{Role: chat.RoleUser, Content: "2+2"},
		{Role: chat.RoleAssistant, Calls: want}, {Role: chat.RoleTool, Content: "4"}}, Tools: tools}); err != nil {
		t.Errorf("declaring a tool: %v", err)
	}
}
