// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpstreamFindsDifferences passes hack/upstream.py a list of models: an unknown one, one with another price, and
// one that equals its embedded entry. The test also fails if the script does not find one of its pins.
func TestUpstreamFindsDifferences(t *testing.T) {
	list := filepath.Join(t.TempDir(), "models.json")
	content := `{"models": [
		{"tinker_id": "Qwen/Qwen3-8B", "prefill": "$0.195", "cached_prefill": "$0.039", "sample": "$0.60", "train": "$0.44"},
		{"tinker_id": "Qwen/Qwen3.5-4B", "prefill": "$9", "cached_prefill": "$0.066", "sample": "$1.005", "train": "$0.737"},
		{"tinker_id": "example/New-1B:peft:65536", "prefill": "$1"}]}`
	if err := os.WriteFile(list, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "python3", filepath.Join("..", "..", "hack", "upstream.py"), "--offline",
		"--models", list)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	var pins, found []string
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "models.json: "); ok {
			found = append(found, rest)
		} else {
			pins = append(pins, line)
		}
	}
	gone := " is not published any more: set its day in the retired models of internal/models/models.json"
	want := []string{
		"Qwen/Qwen3.5-4B has another price: internal/prices/prices.json",
		"example/New-1B:peft:65536 has no embedded price: internal/prices/prices.json",
		"example/New-1B:peft:65536 is not in internal/models/models.json",
		"Qwen/Qwen3.5-35B-A3B-Base" + gone, "Qwen/Qwen3.6-35B-A3B" + gone,
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("lines about models.json (-want +got):\n%s", diff)
	}
	if len(pins) == 0 || !strings.HasPrefix(pins[0], "SDK: ") || !strings.Contains(pins[0], ", pinned in ") {
		t.Errorf("the pins are %q", pins)
	}
}
