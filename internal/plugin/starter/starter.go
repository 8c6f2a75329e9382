// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package starter has the commands of `kubectl tinker env`, which write the files of a new environment.
package starter

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// placeholder stands for the name of the environment in the files.
const placeholder = "NAME"

//go:embed files
var files embed.FS

const initHelp = `kubectl tinker env init writes a folder with an environment to change: tasks, a reward in Python with its tests, and a
manifest with a RewardEnvironment and a TrainingRun. It works as it is written. A file that exists is left as it is, and
nothing is written then.`

const initExample = `  kubectl tinker env init sums
  cd sums && python3 -m unittest
  kubectl tinker try -f environment.yaml --data sums=. --episodes 8 --watch`

// New returns the command env.
func New(env cli.IO) *cobra.Command {
	command := &cobra.Command{Use: "env", Short: "Begin an environment of your own"}
	command.AddCommand(newInit(env))
	return command
}

func newInit(env cli.IO) *cobra.Command {
	var name string
	command := &cobra.Command{
		Use: "init DIR", Short: "Write an environment to change: tasks, reward, tests and manifest", Long: initHelp,
		Example: initExample,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Misused("give one folder, which is made if it is not there")
			}
			return write(env, args[0], name)
		},
	}
	command.Flags().StringVar(&name, "name", "", "`NAME` of the environment; without it the folder's")
	return command
}

// write writes the files of an environment into a folder.
func write(env cli.IO, dir, name string) error {
	if name == "" {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("finding the folder: %w", err)
		}
		name = filepath.Base(absolute)
	}
	if problems := validation.IsDNS1123Label(name); problems != nil {
		return cli.Misused("%q cannot be the name of an environment: %s. Give another one with --name", name, problems[0])
	}
	texts, err := read(name)
	if err != nil {
		return err
	}
	for file := range texts {
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			return fmt.Errorf("%s exists: name another folder, or remove the file", filepath.Join(dir, file))
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	for file, text := range texts {
		if err := create(filepath.Join(dir, file), text); err != nil {
			return err
		}
	}
	fmt.Fprintf(env.Stdout, "%s has an environment %s: environment.yaml says how to try it\n", dir, name)
	return nil
}

// create writes a file that is not there yet.
func create(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("making a file: %w", err)
	}
	_, err = file.WriteString(text)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// read returns the files of an environment with a name.
func read(name string) (map[string]string, error) {
	texts := map[string]string{}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		texts[entry.Name()] = strings.ReplaceAll(string(data), placeholder, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the files of an environment: %w", err)
	}
	return texts, nil
}
