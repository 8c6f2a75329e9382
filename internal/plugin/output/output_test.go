// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

func TestPrint(t *testing.T) {
	result := Result{Header: []string{"NAME", "STEP"}, Rows: [][]string{{"a", "1"}, {"longer", ""}},
		Value: []string{"<a>"}}
	for format, want := range map[Format]string{
		Table: "NAME     STEP\na        1\nlonger\n",
		Plain: "NAME\tSTEP\na\t1\nlonger\t\n",
		JSON:  "[\n  \"<a>\"\n]\n",
	} {
		var out bytes.Buffer
		if err := Print(cli.IO{Stdout: &out}, format, result); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	format := Table
	if err := format.Set("yaml"); err == nil || format != Table {
		t.Errorf("format yaml is accepted as %s", format)
	}
}

func TestTexts(t *testing.T) {
	value := 0.712549
	for want, got := range map[string]string{
		"0.7125": Number(&value), "": Number(nil), "18240": Number(new(18240.4)), "950": Count(950), "12.3k": Count(12345),
		"4.56M": Count(4560000), "1.00M": Count(999999), "0": Count(0),
		"45s": Duration(45 * time.Second), "3m10s": Duration(190 * time.Second), "2h": Duration(2 * time.Hour),
		"3d4h":     Duration(76 * time.Hour),
		"████░░░░": Bar(0.5, 8), "░░": Bar(math.NaN(), 2), "██": Bar(7, 2),
		"a b�[31m":         Safe("a\nb\x1b[31m"),
		"  a bb\n  cccc\n": Wrap("a bb cccc", "  ", 8),
	} {
		if got != want {
			t.Errorf("%q is printed, want %q", got, want)
		}
	}
}

func TestCurve(t *testing.T) {
	got := Curve("reward", []Point{{0, 0}, {10, 1}, {40, 1}, {50, 0.5}}, 24, 4)
	want := `reward: 0.5 at step 50
 1.000 ┤    ╭──────────────╮
 0.750 ┤  ╭─╯              ╰─╮
 0.500 ┤ ╭╯                  ╰─
 0.250 ┤╭╯
 0.000 ┼╯
steps 0 to 50
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("curve (-want +got):\n%s", diff)
	}
	if got := Curve("x", nil, 10, 2); got != "" {
		t.Errorf("nothing is drawn as %q", got)
	}
	if got := Curve("x", []Point{{3, 7}}, 10, 2); got == "" {
		t.Error("one point is not drawn")
	}
}
