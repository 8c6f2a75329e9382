// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// request is what the command line asks for.
type request struct {
	content content
	tag     name.Tag
	out     string
	push    bool
}

// parseFlags reads the command line. It touches no file.
func parseFlags(args []string) (request, error) {
	var parsed request
	var tag, platform string
	content := &parsed.content
	content.labels = map[string]string{}

	set := flag.NewFlagSet("image", flag.ContinueOnError)
	set.Func("binary", "an executable to pack, as `HOST=/in/image`, mode 0755 (repeatable)", appendEntry(&content.entries, 0o755))
	set.Func("file", "a plain file to pack, as `HOST=/in/image`, mode 0644 (repeatable)", appendEntry(&content.entries, 0o644))
	set.Func("dir", "an empty `directory` to make, mode 01777, like /tmp (repeatable)", appendDirectory(&content.entries))
	set.Func("entrypoint", "one `word` of the entrypoint (repeatable)", appendWord(&content.entrypoint))
	set.Func("cmd", "one `word` of the default arguments (repeatable)", appendWord(&content.arguments))
	set.Func("env", "an environment `NAME=VALUE` (repeatable)", appendWord(&content.environment))
	set.Func("label", "an image label `NAME=VALUE` (repeatable)", addLabel(content.labels))
	set.StringVar(&content.user, "user", "65532:65532", "the `uid[:gid]` that the image runs as")
	set.StringVar(&content.workingDir, "workdir", "/", "the working `directory`")
	set.StringVar(&platform, "platform", "linux/amd64", "the `os/arch` that the binaries were built for")
	set.StringVar(&tag, "tag", "", "the `name` of the image, tag included")
	set.StringVar(&parsed.out, "out", "", "the tarball `file` to write")
	set.BoolVar(&parsed.push, "push", false, "push to the registry that the tag names, with the credentials of `docker login`")
	if err := set.Parse(args); err != nil {
		return request{}, err
	}
	if set.NArg() > 0 {
		return request{}, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return parsed, parsed.complete(tag, platform)
}

// complete fills what needs more than one flag to decide.
func (r *request) complete(tag, platform string) error {
	if len(r.content.entries) == 0 {
		return errors.New("nothing to pack: give --binary or --file")
	}
	if r.out == "" && !r.push {
		return errors.New("nowhere to write: give --out or --push")
	}
	parsed, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("reading --tag: %w", err)
	}
	r.tag = parsed
	operatingSystem, architecture, found := strings.Cut(platform, "/")
	if !found {
		return fmt.Errorf("reading --platform %q: want os/arch", platform)
	}
	r.content.operatingSystem, r.content.architecture = operatingSystem, architecture
	return nil
}

func appendEntry(entries *[]entry, mode fs.FileMode) func(string) error {
	return func(value string) error {
		source, target, found := strings.Cut(value, "=")
		if !found || source == "" || !path.IsAbs(target) {
			return fmt.Errorf("want HOST=/in/image, got %q", value)
		}
		*entries = append(*entries, entry{source: source, target: path.Clean(target), mode: mode})
		return nil
	}
}

func appendDirectory(entries *[]entry) func(string) error {
	return func(value string) error {
		if !path.IsAbs(value) {
			return fmt.Errorf("want an absolute path, got %q", value)
		}
		*entries = append(*entries, entry{target: path.Clean(value), mode: fs.ModeDir | fs.ModeSticky | 0o777})
		return nil
	}
}

func appendWord(words *[]string) func(string) error {
	return func(value string) error {
		*words = append(*words, value)
		return nil
	}
}

func addLabel(labels map[string]string) func(string) error {
	return func(value string) error {
		key, text, found := strings.Cut(value, "=")
		if !found {
			return fmt.Errorf("want NAME=VALUE, got %q", value)
		}
		labels[key] = text
		return nil
	}
}
