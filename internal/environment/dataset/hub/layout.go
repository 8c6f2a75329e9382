// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/records"
)

// Config is a configuration, also called subset, as a data set's card lists it.
type Config struct {
	Name      string    `json:"config_name"`
	DataFiles DataFiles `json:"data_files"`
	// DataDir is the folder of its files, to which the patterns of DataFiles are relative.
	DataDir string `json:"data_dir"`
	Default bool   `json:"default"`
}

// folder is DataDir with a slash at its end; empty for the whole repository.
func (c *Config) folder() string {
	if c == nil {
		return ""
	}
	if dir := path.Clean("/" + c.DataDir)[1:]; dir != "" {
		return dir + "/"
	}
	return ""
}

// DataFiles are patterns of paths by split.
type DataFiles map[string][]string

// trainSplit is the split of files whose names do not tell a split.
const trainSplit = "train"

// patterns is one pattern, or a list of them.
type patterns []string

// UnmarshalJSON implements json.Unmarshaler.
func (p *patterns) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*p = patterns{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(p))
}

// UnmarshalJSON reads the forms that cards have: a pattern, a list of patterns, a list of splits with paths, or a map
// of splits to paths.
func (f *DataFiles) UnmarshalJSON(data []byte) error {
	*f = DataFiles{}
	var all patterns
	if json.Unmarshal(data, &all) == nil {
		(*f)[trainSplit] = all
		return nil
	}
	var splits []struct {
		Split string
		Path  patterns
	}
	if json.Unmarshal(data, &splits) == nil {
		for _, s := range splits {
			(*f)[s.Split] = append((*f)[s.Split], s.Path...)
		}
		return nil
	}
	var bySplit map[string]patterns
	if err := json.Unmarshal(data, &bySplit); err != nil {
		return fmt.Errorf("decoding data_files: %w", err)
	}
	for split, paths := range bySplit {
		(*f)[split] = paths
	}
	return nil
}

// LayoutError reports that a repository has no such data. Its text names a field of the definition below the field
// hub, and says what to do.
type LayoutError struct{ Field, Problem, Repair string }

// Error implements error.
func (e *LayoutError) Error() string { return e.Field + ": " + e.Problem + ": " + e.Repair }

// Splits returns the files of each split of a configuration, in their order. An empty name selects the only
// configuration, or the default one. The files of a split are the files that the data set's card lists. If the card
// lists none, the names of files and folders decide, as in the Python library datasets.
func (c Commit) Splits(config string) (map[string][]File, error) {
	chosen, err := c.config(config)
	if err != nil {
		return nil, err
	}
	splits, folder := map[string][]File{}, chosen.folder()
	switch {
	case chosen != nil && len(chosen.DataFiles) > 0:
		for split, paths := range chosen.DataFiles {
			if files := c.matching(folder, paths); len(files) > 0 {
				splits[split] = files
			}
		}
	case folder != "":
		splits = byName(folder, c.data(folder))
	case config != "":
		splits = byName("", c.data(config+"/"))
	default:
		splits = byName("", c.data(""))
	}
	if len(splits) == 0 {
		return nil, c.noData(config)
	}
	return splits, nil
}

// config returns the card's configuration that the name selects; nil if the card lists no configurations.
func (c Commit) config(name string) (*Config, error) {
	if len(c.Configs) == 0 {
		return nil, nil
	}
	var names []string
	for i, known := range c.Configs {
		names = append(names, known.Name)
		if name != "" && known.Name == name || name == "" && (known.Default || known.Name == "default" ||
			len(c.Configs) == 1) {
			return &c.Configs[i], nil
		}
	}
	if name == "" {
		return nil, &LayoutError{"config", "the repository has the configs " + strings.Join(names, ", "),
			"choose one of them"}
	}
	return nil, &LayoutError{"config", fmt.Sprintf("the repository has no config %q; it has %s", name,
		strings.Join(names, ", ")), "correct it"}
}

// noData returns an error that lists the kinds of files that a repository has in place of data.
func (c Commit) noData(config string) error {
	endings := map[string]bool{}
	for _, f := range c.Files {
		if e := path.Ext(f.Path); e != "" && !strings.HasPrefix(path.Base(f.Path), ".") {
			endings[e] = true
		}
	}
	where := "the repository"
	if config != "" {
		where = fmt.Sprintf("config %q of the repository", config)
	}
	return &LayoutError{"repository", fmt.Sprintf("%s has no files in Parquet or JSONL at this revision; all its files "+
		"end in %s", where,
		strings.Join(slices.Sorted(maps.Keys(endings)), ", ")),
		"correct config or revision; the hub's own conversion is revision refs/convert/parquet"}
}

// matching returns the files of a folder that match one of the patterns.
func (c Commit) matching(folder string, paths []string) []File {
	var files []File
	for _, f := range c.Files {
		name, inside := strings.CutPrefix(f.Path, folder)
		if !inside || records.FormatOf(f.Path) == records.Unknown {
			continue
		}
		if slices.ContainsFunc(paths, func(pattern string) bool { return glob(pattern).MatchString(name) }) {
			files = append(files, f)
		}
	}
	return files
}

// glob returns the regular expression for a pattern in which ** stands for any path, * and ? for characters other
// than a slash, and brackets for a choice. The name of a folder stands for everything in it.
func glob(pattern string) *regexp.Regexp {
	pattern = strings.TrimPrefix(pattern, "./")
	var expression strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch rest := pattern[i:]; {
		case strings.HasPrefix(rest, "**/"):
			expression.WriteString("(.*/)?")
			i += 2
		case strings.HasPrefix(rest, "**"):
			expression.WriteString(".*")
			i++
		case rest[0] == '*':
			expression.WriteString("[^/]*")
		case rest[0] == '?':
			expression.WriteString("[^/]")
		case rest[0] == '[' && strings.Contains(rest, "]"):
			end := strings.IndexByte(rest, ']')
			choice := strings.ReplaceAll(rest[1:end], `\`, "")
			expression.WriteString("[" + strings.Replace(choice, "!", "^", 1) + "]")
			i += end
		default:
			expression.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	compiled, err := regexp.Compile("^" + strings.TrimSuffix(expression.String(), "/") + "(/.*)?$")
	if err != nil {
		// A choice such as [z-a] matches nothing.
		return regexp.MustCompile("$.")
	}
	return compiled
}

// data returns the files with data below a folder, which ends in a slash. If there are Parquet files, JSONL files are
// not data.
func (c Commit) data(folder string) []File {
	byFormat := map[records.Format][]File{}
	for _, f := range c.Files {
		if !strings.HasPrefix(f.Path, folder) || isMetadata(f.Path) {
			continue
		}
		format := records.FormatOf(f.Path)
		byFormat[format] = append(byFormat[format], f)
	}
	if parquet := byFormat[records.Parquet]; len(parquet) > 0 {
		return parquet
	}
	return byFormat[records.JSONL]
}

// isMetadata reports whether a file describes data.
func isMetadata(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, ".") || slices.Contains([]string{"dataset_infos.json", "dataset_info.json",
		"dataset_dict.json", "state.json", "config.json"}, base)
}

// keywords maps words in the names of files and folders to splits.
var keywords = map[string]string{
	"train": trainSplit, "training": trainSplit, "test": "test", "testing": "test", "eval": "test", "evaluation": "test",
	"validation": "validation", "valid": "validation", "dev": "validation", "val": "validation",
}

var (
	shard = regexp.MustCompile(`(?:^|/)data/([^/]+)-\d{5}-of-\d{5}[^/]*$`)
	words = regexp.MustCompile(`[A-Za-z]+`)
)

// byName finds the splits by the names of the files below a folder, or else by the names of the folders there. If no
// name tells a split, all files belong to the split train.
func byName(folder string, files []File) map[string][]File {
	for _, splitOf := range []func(string) string{splitOfShard, splitOfFile, splitOfFolder} {
		splits := map[string][]File{}
		for _, f := range files {
			if split := splitOf(strings.TrimPrefix(f.Path, folder)); split != "" {
				splits[split] = append(splits[split], f)
			}
		}
		if len(splits) > 0 {
			return splits
		}
	}
	if len(files) == 0 {
		return nil
	}
	return map[string][]File{trainSplit: files}
}

func splitOfShard(name string) string {
	if found := shard.FindStringSubmatch(name); found != nil {
		return found[1]
	}
	return ""
}

func splitOfFile(name string) string { return keyword(path.Base(name)) }

func splitOfFolder(name string) string { return keyword(path.Dir(name)) }

func keyword(text string) string {
	for _, word := range words.FindAllString(text, -1) {
		if split := keywords[strings.ToLower(word)]; split != "" {
			return split
		}
	}
	return ""
}
