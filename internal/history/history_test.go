// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

type metrics = map[string]float64

// step returns the record of a step whose version has a lineage.
func step(number, step int64, lineage string) contract.Record {
	return contract.Record{Number: number, Step: step, Lineage: lineage, Attempt: 1, Time: 100 * step,
		Metrics: metrics{contract.MetricReward: float64(step)}}
}

func evaluation(number, at int64, lineage string) contract.Record {
	return contract.Record{
		Number: number, Step: at, Lineage: lineage, Attempt: 1, Time: 100*at + 50, Evaluation: true,
		Metrics: metrics{contract.MetricPassAt1: 0.5},
	}
}

func resumed(number, at int64) contract.Record {
	return contract.Record{Number: number, Step: at, Resumed: true}
}

// summary describes each row by its step, its lineage, and E if the step was evaluated.
func summary(h *History) []string {
	var all []string
	for _, row := range h.Rows {
		text := fmt.Sprintf("%d%s", row.Step, row.Lineage)
		if row.Evaluated() {
			text += "E"
		}
		all = append(all, text)
	}
	return all
}

func TestAdd(t *testing.T) {
	cases := map[string]struct {
		records []contract.Record
		want    []string
	}{
		"steps":                  {[]contract.Record{step(1, 1, "a"), step(2, 2, "a")}, []string{"1a", "2a"}},
		"a record that is known": {[]contract.Record{step(1, 1, "a"), step(1, 1, "b")}, []string{"1a"}},
		"an evaluation before the first": {[]contract.Record{evaluation(1, 0, "z"), step(2, 1, "a")},
			[]string{"0zE", "1a"}},
		"an evaluation completes its row": {[]contract.Record{step(1, 1, "a"), step(2, 2, "a"), evaluation(3, 1, "a")},
			[]string{"1aE", "2a"}},
		"an evaluation of other weights": {[]contract.Record{step(1, 1, "a"), evaluation(2, 1, "b")}, []string{"1a"}},
		"a resume removes what was lost": {[]contract.Record{step(1, 1, "a"), step(2, 2, "a"), step(3, 3, "a"),
			resumed(4, 1)}, []string{"1a"}},
		"a run that begins anew": {[]contract.Record{evaluation(1, 0, "z"),
			{Number: 2, Lineage: "y", Resumed: true}, evaluation(3, 0, "y")}, []string{"0yE"}},
		"a run that resumes at its beginning": {[]contract.Record{evaluation(1, 0, "z"),
			{Number: 2, Lineage: "z", Resumed: true}, step(3, 1, "a")}, []string{"0zE", "1a"}},
		"a step that is made again": {[]contract.Record{step(1, 1, "a"), evaluation(2, 1, "a"), step(3, 2, "a"),
			resumed(4, 0), step(5, 1, "b")}, []string{"1b"}},
		"the same step made again": {[]contract.Record{step(1, 1, "a"), evaluation(2, 1, "a"), step(3, 2, "a"),
			step(4, 1, "a")}, []string{"1aE", "2a"}},
		"other weights remove what followed": {[]contract.Record{step(1, 1, "a"), step(2, 2, "a"), step(3, 1, "b")},
			[]string{"1b"}},
		"a row that comes late": {[]contract.Record{step(1, 1, "a"), step(2, 3, "a"), step(3, 2, "a")},
			[]string{"1a", "2a", "3a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var h History
			h.Add("pod", tc.records)
			if diff := cmp.Diff(tc.want, summary(&h)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAddFromAnotherProcess checks that no record of another process counts as known, since each process numbers its
// own records.
func TestAddFromAnotherProcess(t *testing.T) {
	var h History
	h.Add("first", []contract.Record{step(1, 1, "a"), step(2, 2, "a")})
	if got := h.KnownOf("second"); got != 0 {
		t.Errorf("%d records of another process are known", got)
	}
	h.Add("second", []contract.Record{resumed(1, 1), step(2, 2, "b")})
	if diff := cmp.Diff([]string{"1a", "2b"}, summary(&h)); diff != "" || h.KnownOf("second") != 2 {
		t.Errorf("rows, with %d known ones (-want +got):\n%s", h.KnownOf("second"), diff)
	}
}

// TestThinningDoesNotDependOnPolls adds the records of a long run in portions of any size: the rows are the same.
func TestThinningDoesNotDependOnPolls(t *testing.T) {
	var records []contract.Record
	for i := int64(1); i <= 3000; i++ {
		records = append(records, step(int64(len(records)+1), i, "a"))
		if i%50 == 0 {
			records = append(records, evaluation(int64(len(records)+1), i, "a"))
		}
	}
	var whole History
	whole.Add("pod", records)
	if n := len(whole.Rows); n > MaxRows || n < MaxRows/4 {
		t.Errorf("%d rows are kept of 3,000", n)
	}
	if first, last := whole.Rows[0], whole.Rows[len(whole.Rows)-1]; first.Step > 8 || last.Step != 3000 {
		t.Errorf("rows are of the steps %d to %d", first.Step, last.Step)
	}
	evaluated := 0
	for _, row := range whole.Rows {
		if row.Evaluated() {
			evaluated++
		}
	}
	if evaluated != 60 {
		t.Errorf("%d evaluations are kept of 60", evaluated)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		var h History
		for rest := records; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(100))
			h.Add("pod", rest[:n])
			parts, err := h.Encode()
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := Decode(parts)
			if err != nil {
				t.Fatal(err)
			}
			h, rest = *decoded, rest[n:]
		}
		if diff := cmp.Diff(whole, h, cmpopts.IgnoreUnexported(History{})); diff != "" {
			t.Fatalf("the history depends on the portions (-whole +portions):\n%s", diff)
		}
	}
}

func TestManyEvaluationsAreThinned(t *testing.T) {
	var h History
	for i := int64(1); i <= 2000; i++ {
		h.Add("pod", []contract.Record{step(2*i, i, "a"), evaluation(2*i+1, i, "a")})
	}
	if n := len(h.Rows); n > MaxRows || n < MaxRows/4 {
		t.Errorf("%d rows are kept", n)
	}
}

func TestEncodingIsBounded(t *testing.T) {
	var h History
	for i := int64(1); i <= 512; i++ {
		record := step(i, i, "0123456789")
		for n := range 200 {
			record.Metrics[fmt.Sprintf("env/a-long-name-of-an-environment-%d/reward/total", n)] = 1.0 / float64(i+int64(n))
		}
		h.Add("pod", []contract.Record{record})
	}
	parts, err := h.Encode()
	if err != nil || parts.Size() > MaxBytes {
		t.Errorf("the encoding has %d bytes (%v)", parts.Size(), err)
	}
	if decoded, err := Decode(parts); err != nil || len(decoded.Rows) < 16 ||
		decoded.Rows[len(decoded.Rows)-1].Step != 512 {
		t.Errorf("%v is decoded", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":               "x",
		"another version":       `{"version": 3}`,
		"rows in disorder":      `{"version": 1, "rows": [{"step": 2}, {"step": 1}]}`,
		"chunks without an end": `{"version": 2, "chunks": [` + strings.Repeat(`"a", `, 100) + `"a"]}`,
		"too many values":       `{"version": 1, "metrics": ["a"], "rows": [{"step": 1, "values": [1, 2]}]}`,
	} {
		if _, err := Decode(Parts{Head: []byte(text)}); err == nil {
			t.Errorf("%s is decoded", name)
		}
	}
}

// hostile returns records that no learner of the project sends: each row has an evaluation.
func hostile(records int64, step func(number int64) int64, metrics int, name string) []contract.Record {
	var all []contract.Record
	for n := int64(1); n <= records; n++ {
		record := contract.Record{Number: n, Step: step(n), Lineage: "l", Metrics: map[string]float64{}}
		for i := range metrics {
			record.Metrics[fmt.Sprintf("test/%s%d-%d", name, n, i)] = -1.23456e-7
		}
		all = append(all, record)
	}
	return all
}

// TestEncodeEnds checks that Encode ends for records that a tenant's own image may send. In one case there are only
// rows with evaluations, and too many of them; in another, a stride that grows without end would overflow.
func TestEncodeEnds(t *testing.T) {
	each := func(n int64) int64 { return n }
	for name, records := range map[string][]contract.Record{
		"three rows of 5,500 metrics":         hostile(3, each, 5500, ""),
		"128 rows of 5,500 metrics":           hostile(128, each, 5500, ""),
		"names of 64 KiB":                     hostile(128, each, 8, strings.Repeat("n", 64<<10)),
		"250 evaluations":                     hostile(250, each, 64, strings.Repeat("n", 200)),
		"1,000 evaluations":                   hostile(1000, each, 64, strings.Repeat("n", 200)),
		"steps that every stride divides":     hostile(700, func(n int64) int64 { return n << 50 }, 64, ""),
		"steps below 0":                       hostile(700, func(n int64) int64 { return -(n << 40) }, 64, ""),
		"one version evaluated again, always": hostile(2000, func(int64) int64 { return 7 }, 64, strings.Repeat("n", 200)),
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				var h History
				h.Add("pod", records)
				if len(h.Rows) > MaxRows {
					t.Errorf("%d rows are kept", len(h.Rows))
				}
				parts, err := h.Encode()
				if err != nil || parts.Size() > MaxBytes {
					t.Errorf("the encoding has %d bytes (%v), want at most %d", parts.Size(), err, MaxBytes)
				}
				if len(h.Rows) == 0 || h.Known != records[len(records)-1].Number {
					t.Errorf("%d rows are left up to record %d", len(h.Rows), h.Known)
				}
			}()
			select {
			case <-ended:
			case <-time.After(10 * time.Minute):
				t.Fatal("adding and encoding has not ended after ten minutes")
			}
		})
	}
}

// TestDecodeRepairsStride decodes a stride that a person wrote into the ConfigMap, and adds to that history.
func TestDecodeRepairsStride(t *testing.T) {
	for _, stride := range []int64{0, -1, math.MinInt64, math.MaxInt64, 1<<62 + 1} {
		h, err := Decode(Parts{Head: fmt.Appendf(nil, `{"version": 1, "stride": %d}`, stride)})
		if err != nil {
			t.Fatal(err)
		}
		h.Add("pod", hostile(700, func(n int64) int64 { return n }, 64, ""))
		if _, err := h.Encode(); err != nil || h.Stride < 1 || len(h.Rows) == 0 {
			t.Errorf("stride %d becomes %d with %d rows (%v)", stride, h.Stride, len(h.Rows), err)
		}
	}
}

// TestEvaluationsLeaveRoomForSteps encodes the reports of the project's own learner with 32 environments that are
// evaluated at every step: rows of the whole run stay, not only rows of its end.
func TestEvaluationsLeaveRoomForSteps(t *testing.T) {
	var h History
	number := int64(0)
	for n := int64(1); n <= 256; n++ {
		trained, evaluated := metrics{contract.MetricReward: 0.5}, metrics{contract.MetricPassAt1: 0.5}
		for env := range 31 {
			trained[fmt.Sprintf("env/environment-%02d/reward/total", env)] = 1 / float64(n+7)
			evaluated[fmt.Sprintf("test/environment-%02d/pass@1", env)] = 1 / float64(n+3)
			evaluated[fmt.Sprintf("test/environment-%02d/pass@4", env)] = 1 / float64(n+5)
		}
		h.Add("pod", []contract.Record{
			{Number: number + 1, Step: n, Lineage: "a", Metrics: contract.RecordMetrics(trained)},
			{Number: number + 2, Step: n, Lineage: "a", Evaluation: true, Metrics: contract.RecordMetrics(evaluated)},
		})
		number += 2
		if n%16 != 0 {
			continue
		}
		if _, err := h.Encode(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(h.Rows); n < 64 || h.Rows[0].Step > 8 || h.Rows[n-1].Step != 256 {
		t.Errorf("%d rows are left, of steps %d to %d", n, h.Rows[0].Step, h.Rows[n-1].Step)
	}
}

// TestPageHasTheBounds checks the bounds that docs/observing.md gives.
func TestPageHasTheBounds(t *testing.T) {
	page, err := os.ReadFile("../../docs/observing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("at most %d rows and %d KiB", MaxRows, MaxBytes>>10),
		fmt.Sprintf("as long as at most %d rows have one", MaxRows/2),
		fmt.Sprintf("once they have become %d KiB", headBytes>>10)} {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
			t.Errorf("docs/observing.md does not say %q", want)
		}
	}
}
