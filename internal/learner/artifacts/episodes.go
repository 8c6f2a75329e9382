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

const (
	episodesDir       = "episodes"
	episodesExtension = ".jsonl.gz"
)

// RunFiles returns the names of a run's files below the store: the folder of its episodes, the file with its committed
// rows, and the prefix of the objects that have the lines of this file at a URL.
func RunFiles(runUID string) (episodes, rows, chunks string) {
	return path.Join(runUID, episodesDir), path.Join(runUID, rowsName), path.Join(runUID, chunkPrefix(rowsName)) + "-"
}

// MetricLines returns the names of metrics.jsonl and evaluations.jsonl of a run below the store, each with the prefix
// of the objects that have its lines at a URL.
func MetricLines(runUID string) (metrics, evaluations [2]string) {
	of := func(file string) [2]string {
		return [2]string{path.Join(runUID, file), path.Join(runUID, chunkPrefix(file)) + "-"}
	}
	return of(metricsName), of(evaluationsName)
}

// CommittedVersions returns the versions of a file with committed rows, by the names of EpisodesKey.
func CommittedVersions(rows []byte) map[string]bool {
	committed := map[string]bool{}
	for v := range decodeSummaries(rows) {
		committed[EpisodesKey(v.Step, v.Lineage.String())] = true
	}
	return committed
}

// EpisodesStep returns the step in a name that EpisodesKey has made.
func EpisodesStep(key string) (int64, bool) {
	text, _, ok := strings.Cut(key, "-")
	step, err := strconv.ParseInt(text, 10, 64)
	return step, ok && err == nil
}

// EpisodesKey names the episodes of a version, without folder and extension.
func EpisodesKey(step int64, lineage string) string { return fmt.Sprintf("%09d-%s", step, lineage) }

// KeyOf returns the key of a file with episodes; ok is false for other files.
func KeyOf(name string) (key string, ok bool) {
	return strings.CutSuffix(path.Base(name), episodesExtension)
}

// EpisodesFile returns the name of the file with the episodes of a key, in its folder.
func EpisodesFile(key string) string { return key + episodesExtension }

const evaluatedPrefix = "evaluation-"

// EvaluatedVersion returns the version, by the name of EpisodesKey, of a file with the episodes of an evaluation.
func EvaluatedVersion(key string) (version string, ok bool) {
	rest, ok := strings.CutPrefix(key, evaluatedPrefix)
	end := strings.LastIndexByte(rest, '-')
	if !ok || end < 0 {
		return "", false
	}
	return rest[:end], true
}

func evaluatedEpisodesName(e Evaluation) string {
	return path.Join(episodesDir, evaluatedPrefix+EpisodesKey(e.Step, e.Lineage.String())+"-"+e.Digest+episodesExtension)
}

// WriteEvaluatedEpisodes makes the episodes of an evaluation durable, unless they are nil.
func (s *Store) WriteEvaluatedEpisodes(e Evaluation, episodes []byte) error {
	if episodes == nil {
		return nil
	}
	if err := s.files.publish(evaluatedEpisodesName(e), episodes); err != nil {
		return fmt.Errorf("writing episodes of the evaluation of step %d: %w", e.Step, err)
	}
	return nil
}

// publish writes a file that is never read from the copy, so that the copy need not have it.
func (f *folder) publish(name string, data []byte) error {
	if f.remote != nil {
		return f.remote.put(name, data)
	}
	return atomicfile.WriteDurable(f.path(name), fileMode, data)
}

// list returns the names in a folder, without the folder's name.
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
