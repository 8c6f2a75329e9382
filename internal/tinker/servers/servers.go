// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package servers is the table of the servers that speak the Tinker API: which version was tested, how, and which
// features it was found to support. Package capability finds features of a server by trying them; the files of this
// package are its findings, and docs/endpoints.md has the tables that are made of them.
//
// The check of a run takes nothing from the table. No answer of the API names the server and its version, so a run
// cannot know the row of its endpoint, and most features of a wrong row would spoil the run without an error.
// docs/endpoints.md has the evidence, and the cost of the check.
package servers

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// Server is a row of the table: one version of a server.
type Server struct {
	// Name and Version are the server's; Version is "" if the server has none, or none was tested.
	Name, Version string
	// SDK is the newest version of the official SDK whose wire format the server is known to speak; "" if that is not
	// known.
	SDK string
	// Tested describes the test and its date; "" for a server that was not tested.
	Tested string
	// Known describes the consequences for a run, or the knowledge about a server that was not tested, and its source.
	Known string
	// features is the file of findings; "" if there is none.
	features string
	// complete says that every feature was found to be supported.
	complete bool
}

// All are the servers: the tested ones, and then the others.
var All = slices.Concat(tested, untested)

//go:embed *.txt
var files embed.FS

// Features returns the support of every feature that was tried at the server; nil for a server that was not tested.
func (s Server) Features() map[capability.Feature]capability.Support {
	found := map[capability.Feature]capability.Support{}
	if s.complete {
		for _, f := range capability.All() {
			found[f] = capability.Supported
		}
		return found
	}
	if s.features == "" {
		return nil
	}
	for line := range strings.Lines(s.Recorded()) {
		feature, support, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[capability.Feature(feature)] = capability.Support(support)
	}
	return found
}

// Recorded returns the file of findings at the server, whose lines are a feature and its support; "" if there is none.
func (s Server) Recorded() string {
	if s.features == "" {
		return ""
	}
	text, err := files.ReadFile(s.features)
	if err != nil {
		panic(err) // a test reads all of them
	}
	return string(text)
}

// Find returns the row of a server's version.
func Find(name, version string) (Server, bool) {
	i := slices.IndexFunc(All, func(s Server) bool { return s.Name == name && s.Version == version })
	if i < 0 {
		return Server{}, false
	}
	return All[i], true
}

// title is the name of a server with its version.
func (s Server) title() string { return strings.TrimSpace(s.Name + " " + s.Version) }

// Table returns the servers as a table of Markdown.
func Table() string {
	var out strings.Builder
	out.WriteString("| server | SDK | what was run, and when | known |\n|---|---|---|---|\n")
	for _, s := range All {
		row := []string{s.title(), s.SDK, s.Tested, s.Known}
		if s.SDK == "" {
			row[1] = "unknown"
		}
		if s.Tested == "" {
			row[2] = "not tested"
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
	}
	return out.String()
}

// marks stand for the kinds of support in the table of features.
var marks = map[capability.Support]string{
	capability.Supported: "yes", capability.Ignored: "ignored", capability.Unsupported: "no",
	capability.Unknown: "unknown",
}

// FeatureTable returns the features of the tested servers in Markdown: the features that all of them honour in a
// sentence, and a table of the others, whose rows have the features with the same support.
func FeatureTable() string {
	head, rule := []string{"feature"}, []string{"---"}
	var found []map[capability.Feature]capability.Support
	for _, s := range All {
		if features := s.Features(); features != nil {
			head, rule, found = append(head, s.title()), append(rule, "---"), append(found, features)
		}
	}
	var honoured, rows []string
	names := map[string][]string{} // of the features of a row
	for _, f := range capability.All() {
		name, row, differs := "`"+string(f)+"`", "", false
		for _, features := range found {
			row += " | " + marks[features[f]]
			differs = differs || features[f] != capability.Supported
		}
		if !differs {
			honoured = append(honoured, name)
			continue
		}
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], name)
	}
	var table strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s%s |\n", strings.Join(names[row], ", "), row)
	}
	return fmt.Sprintf("All of them honour %s.\n\n| %s |\n|%s|\n%s", strings.Join(honoured, ", "),
		strings.Join(head, " | "), strings.Join(rule, "|"), table.String())
}
