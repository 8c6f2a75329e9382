// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package output prints the results of commands: as a table for people, as JSON, or as plain lines for scripts.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// Format is the format of a printed result.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	Plain Format = "plain"
)

// Flag adds the flag --output.
func Flag(flags *pflag.FlagSet) *Format {
	format := Table
	flags.VarP(&format, "output", "o", "`FORMAT` of the output: table, json, or plain, which is a header and lines of "+
		"fields that tabs separate")
	return &format
}

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *Format) Set(text string) error {
	switch Format(text) {
	case Table, JSON, Plain:
		*f = Format(text)
		return nil
	}
	return fmt.Errorf("%q is not a format: choose table, json or plain", text)
}

// Result is a table that can be printed in each format.
type Result struct {
	Header []string
	Rows   [][]string
	// Value is the value that JSON shows.
	Value any
}

// Print prints a result.
func Print(env cli.IO, format Format, result Result) error {
	switch format {
	case JSON:
		return PrintJSON(env.Stdout, result.Value)
	case Plain:
		for _, row := range slices.Concat([][]string{result.Header}, result.Rows) {
			if _, err := fmt.Fprintln(env.Stdout, strings.Join(row, "\t")); err != nil {
				return err
			}
		}
		return nil
	default:
		return printTable(env.Stdout, result)
	}
}

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// printTable aligns columns, and ends no line with spaces.
func printTable(w io.Writer, result Result) error {
	var text bytes.Buffer
	writer := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	fmt.Fprintln(writer, strings.Join(result.Header, "\t"))
	for _, row := range result.Rows {
		fmt.Fprintln(writer, strings.Join(row, "\t"))
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
