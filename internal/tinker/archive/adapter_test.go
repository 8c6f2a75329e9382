// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// tensors returns a file of one tensor with a header.
func tensors(header string, body string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + body
}

const oneTensor = `{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`

// pack writes a tar archive of files, in pairs of name and content.
func pack(t *testing.T, files ...string) string {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, buffer.Bytes())
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestUnpackAdapter(t *testing.T) {
	good := tensors(oneTensor, "1234")
	for name, files := range map[string][]string{
		"at the top":         {ConfigFile, "{}", "README.md", "x", TensorsFile, good},
		"in a folder":        {ConfigFile, "not that of PEFT", "peft/" + TensorsFile, good, "peft/" + ConfigFile, "{}"},
		"outside the folder": {"../../" + ConfigFile, "{}", "../../" + TensorsFile, good},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "below", "out")
			unpacked, err := Unpack(pack(t, files...), folder)
			if err != nil || len(unpacked) != 2 {
				t.Fatalf("%v, %v", unpacked, err)
			}
			for file, want := range map[string]string{ConfigFile: "{}", TensorsFile: good} {
				if got, err := os.ReadFile(filepath.Join(folder, file)); err != nil || string(got) != want {
					t.Errorf("%s has %q, %v", file, got, err)
				}
			}
		})
	}
}

func TestUnpackLeavesNothingOfBadArchive(t *testing.T) {
	good := pack(t, ConfigFile, "{}", TensorsFile, tensors(oneTensor, "1234"))
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, archive := range map[string]string{
		"a page":                           write(t, []byte("<html>sign in</html>")),
		"a cut archive":                    write(t, whole[:len(whole)/2]),
		"a cut file of tensors":            pack(t, ConfigFile, "{}", TensorsFile, tensors(oneTensor, "123")),
		"a header too long":                pack(t, ConfigFile, "{}", TensorsFile, "\xff\xff\xff\xff\xff\xff\xff\xff"),
		"no header":                        pack(t, ConfigFile, "{}", TensorsFile, ""),
		"a configuration that is not JSON": pack(t, TensorsFile, tensors(oneTensor, "1234"), ConfigFile, "<html>"),
		"tensors alone":                    pack(t, TensorsFile, tensors(oneTensor, "1234")),
		"tensors elsewhere":                pack(t, ConfigFile, "{}", "x/"+TensorsFile, tensors(oneTensor, "1234")),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			_, err := Unpack(archive, folder)
			if err == nil {
				t.Error("the archive was accepted")
			}
			if missing := name == "tensors alone" || name == "tensors elsewhere"; missing != errors.Is(err, ErrNoAdapter) {
				t.Errorf("the error is %v", err)
			}
			if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
				t.Errorf("%v is left, %v", entries, err)
			}
		})
	}
}
