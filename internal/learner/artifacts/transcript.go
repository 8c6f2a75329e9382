// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

const transcriptsDir = "transcripts"

// WriteTranscript writes the transcript of a committed step as JSON and as a page. The JSON comes last: where it
// exists, the page does, too.
func (s *Store) WriteTranscript(step int64, lineage string, encoded, page []byte) error {
	name := transcriptName(step, lineage)
	for _, file := range []struct {
		name string
		data []byte
	}{{name + ".html", page}, {name + ".json", encoded}} {
		if err := s.files.publish(file.name, file.data); err != nil {
			return fmt.Errorf("writing transcript of step %d: %w", step, err)
		}
	}
	return nil
}

// Transcripts returns which versions have a transcript, by the names of TranscriptKey.
func (s *Store) Transcripts() (map[string]bool, error) {
	names, err := s.files.list(transcriptsDir)
	if err != nil {
		return nil, fmt.Errorf("listing transcripts: %w", err)
	}
	found := map[string]bool{}
	for _, name := range names {
		if key, ok := strings.CutSuffix(name, ".json"); ok {
			found[key] = true
		}
	}
	return found, nil
}

// RunFiles returns the names, below that of the store, of a run's transcripts, of the file with its committed rows, and
// what the names begin with of the objects that have this file's lines at a URL.
func RunFiles(runUID string) (transcripts, rows, chunks string) {
	return path.Join(runUID, transcriptsDir), path.Join(runUID, rowsName), path.Join(runUID, chunkPrefix(rowsName)) + "-"
}

// CommittedTranscripts returns the versions of a file with committed rows, by the names of TranscriptKey.
func CommittedTranscripts(rows []byte) map[string]bool {
	committed := map[string]bool{}
	for v := range decodeSummaries(rows) {
		committed[TranscriptKey(v.Step, v.Lineage.String())] = true
	}
	return committed
}

// TranscriptStep returns the step of a name of TranscriptKey.
func TranscriptStep(key string) (int64, bool) {
	text, _, ok := strings.Cut(key, "-")
	step, err := strconv.ParseInt(text, 10, 64)
	return step, ok && err == nil
}

// TranscriptKey names the transcript of a version.
func TranscriptKey(step int64, lineage string) string { return fmt.Sprintf("%09d-%s", step, lineage) }

func transcriptName(step int64, lineage string) string {
	return path.Join(transcriptsDir, TranscriptKey(step, lineage))
}

// publish writes a file that nobody reads here, so that no copy is needed.
func (f *folder) publish(name string, data []byte) error {
	if f.remote != nil {
		return f.remote.put(name, data)
	}
	return atomicfile.WriteDurable(f.path(name), fileMode, data)
}

// list returns the names in a folder, without it.
func (f *folder) list(folder string) ([]string, error) {
	if f.remote != nil {
		return f.remote.list(folder)
	}
	entries, err := os.ReadDir(f.path(folder))
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}
