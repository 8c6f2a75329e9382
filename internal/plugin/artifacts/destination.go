// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// mostProblems bounds how many files that could not be written are named.
const mostProblems = 5

// destination is a folder of this machine into which files are copied. Any writer of the artifacts chooses the names
// of files, and a link in the folder may have one of these names: root lets no name lead out of the folder.
type destination struct {
	root *os.Root
	// files are the names of files here, by their names in the artifacts.
	files map[string]string
	// present are the complete files, and failed the reasons for which others cannot be written.
	present map[string]bool
	failed  map[string]error
	// sizes are the sizes of the files, and total their sum.
	sizes map[string]int64
	total int64
	// open is the file whose parts arrive.
	open *partial
	// copied and bytes count written files and their bytes, and kept the files that were there.
	copied, kept int
	bytes        int64
}

// partial is a file with the parts that have arrived, under a temporary name.
type partial struct {
	name, temporary string
	file            *os.File
	offset          int64
}

// openDestination returns the folder that files of a path are copied to, and makes it.
func openDestination(files []delivery.File, at, to string) (*destination, error) {
	dir, alone := to, ""
	if len(files) == 1 && files[0].Name == at {
		if alone = path.Base(at); !isFolder(to) {
			dir, alone = filepath.Dir(to), filepath.Base(to)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder %s: %w: choose another destination", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder %s: %w: choose another destination", dir, err)
	}
	d := &destination{root: root, files: map[string]string{}, present: map[string]bool{}, failed: map[string]error{},
		sizes: map[string]int64{}}
	for _, file := range files {
		name := file.Name
		switch {
		case alone != "":
			name = alone
		case at != "":
			name = strings.TrimPrefix(name, at+"/")
		}
		local, err := filepath.Localize(name)
		d.files[file.Name], d.sizes[file.Name] = local, file.Size
		d.total += file.Size
		if err != nil {
			d.failed[file.Name] = errors.New("no file of this machine can have the name")
			continue
		}
		if strings.Contains("/"+name, "/.") {
			d.failed[file.Name] = errors.New("no run writes such a name, which this machine's programs may give a meaning")
			continue
		}
		info, err := root.Lstat(local)
		if err == nil && info.Mode().IsRegular() && info.Size() == file.Size && sameTime(info.ModTime(), file.Modified) {
			d.present[file.Name] = true
			d.kept++
		}
	}
	return d, nil
}

// sameTime reports whether two times of a file are equal. Some file systems keep times in steps of one or two
// seconds.
func sameTime(a, b time.Time) bool { return a.Sub(b).Abs() < 2*time.Second }

// missing returns the files that are to be copied.
func (d *destination) missing() map[string]bool {
	missing := map[string]bool{}
	for name := range d.files {
		if !d.present[name] && d.failed[name] == nil {
			missing[name] = true
		}
	}
	return missing
}

// whole returns how many files are there.
func (d *destination) whole() int { return len(d.present) }

// done returns how many bytes are there.
func (d *destination) done() (bytes int64) {
	for name := range d.present {
		bytes += d.sizes[name]
	}
	if d.open != nil {
		bytes += d.open.offset
	}
	return bytes
}

// take writes a part of a file. A file that cannot be written does not keep others from being copied.
func (d *destination) take(part *delivery.Part) error {
	if part == nil {
		return nil
	}
	if _, wanted := d.files[part.Name]; !wanted || d.present[part.Name] || d.failed[part.Name] != nil {
		return nil
	}
	if part.Offset == 0 {
		d.discard()
		d.total += part.Size - d.sizes[part.Name]
		d.sizes[part.Name] = part.Size
	}
	if err := d.write(part); err != nil {
		d.discard()
		d.failed[part.Name] = err
	}
	return nil
}

func (d *destination) write(part *delivery.Part) error {
	local := d.files[part.Name]
	if part.Offset == 0 {
		if err := d.root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
			return err
		}
		temporary := filepath.Join(filepath.Dir(local), ".copy-"+rand.Text()[:10]+atomicfile.Extension)
		file, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		d.open = &partial{name: part.Name, temporary: temporary, file: file}
	}
	p := d.open
	if p == nil || p.name != part.Name || p.offset != part.Offset {
		return errors.New("a part of it is missing: try again")
	}
	n, err := p.file.Write(part.Data)
	p.offset += int64(n)
	if err != nil || p.offset < part.Size {
		return err
	}
	if err := errors.Join(p.file.Sync(), p.file.Close()); err != nil {
		return err
	}
	if err := d.root.Chtimes(p.temporary, part.Modified, part.Modified); err != nil {
		return err
	}
	if err := d.root.Rename(p.temporary, local); err != nil {
		return err
	}
	d.open, d.present[part.Name] = nil, true
	d.copied++
	d.bytes += part.Size
	return nil
}

// discard removes a file that lacks parts.
func (d *destination) discard() {
	if d.open != nil {
		_ = d.open.file.Close()
		_ = d.root.Remove(d.open.temporary)
		d.open = nil
	}
}

func (d *destination) close() {
	d.discard()
	_ = d.root.Close()
}

// problems names files that could not be written.
func (d *destination) problems() error {
	var errs []error
	for i, name := range slices.Sorted(maps.Keys(d.failed)) {
		if i == mostProblems {
			errs = append(errs, fmt.Errorf("%d other files could not be written", len(d.failed)-mostProblems))
			break
		}
		errs = append(errs, fmt.Errorf("writing %s: %w", output.Safe(name), d.failed[name]))
	}
	return errors.Join(errs...)
}
