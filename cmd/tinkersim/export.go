// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/export"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

const exportUsage = `tinkersim export-base [--model NAME] DIR writes a base model to a folder, which must be new or empty.

  tinkersim export-base ./base
  python3 -c 'import transformers; transformers.AutoModelForCausalLM.from_pretrained("./base")'

The Python package transformers loads it from 4.53 on, as its class Arcee, and peft loads adapters on top of it that
were downloaded from tinkersim.

Flags:
`

// exportCommand is the name of the command that writes a base model.
const exportCommand = "export-base"

// exportBase writes the base model that the arguments name.
func exportBase(args []string, output io.Writer) error {
	flags := flag.NewFlagSet(exportCommand, flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		fmt.Fprint(output, exportUsage)
		flags.PrintDefaults()
	}
	name := flags.String("model", tinkersim.ModelName, "`name` of the base model: "+tinkersim.ModelName+" or "+
		tinkersim.CountdownModelName+" or "+tinkersim.SumsModelName)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%w: name one folder, as in: tinkersim export-base ./base", errUsage)
	}
	var base *model.BaseModel
	switch *name {
	case tinkersim.ModelName:
		base = model.Base()
	case tinkersim.CountdownModelName:
		base = model.CountdownBase()
	case tinkersim.SumsModelName:
		base = model.SumsBase()
	default:
		return fmt.Errorf("%w: --model %q is unknown: name %s, %s or %s", errUsage, *name, tinkersim.ModelName,
			tinkersim.CountdownModelName, tinkersim.SumsModelName)
	}
	return writeBase(base, flags.Arg(0), output)
}

// errUsage says that the arguments are wrong.
var errUsage = errors.New("usage")

func writeBase(base *model.BaseModel, dir string, output io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	present, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the folder: %w", err)
	}
	if len(present) > 0 {
		return fmt.Errorf("%w: the folder %s is not empty: name a new one", errUsage, dir)
	}
	files, err := export.BaseFiles(base)
	if err != nil {
		return err
	}
	for _, file := range files {
		name := filepath.Join(dir, file.Name)
		if err := atomicfile.WriteDurable(name, 0o644, file.Data); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		fmt.Fprintln(output, name)
	}
	return nil
}
