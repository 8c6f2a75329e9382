// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

// oneFile is the value of a flag that names one file. It refuses a second file, which would silently replace the
// first.
type oneFile struct{ path *string }

func (f oneFile) String() string {
	if f.path == nil {
		return ""
	}
	return *f.path
}

func (f oneFile) Set(path string) error {
	if *f.path != "" {
		return errors.New("it takes one file: put all objects into it, separated by ---")
	}
	*f.path = path
	return nil
}

func (oneFile) Type() string { return "string" }

// FileFlag adds the flag -f, which names one file.
func FileFlag(flags *pflag.FlagSet, path *string, usage string) {
	flags.VarP(oneFile{path}, "filename", "f", usage)
}
