// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/plugin/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/status"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
	"github.com/tinker-operator/tinker-operator/internal/transcript/page"
)

const transcriptsHelp = `kubectl tinker transcripts prints the conversations of a committed step with their
rewards: those of the first groups of its batch, or of all, as spec.artifacts.episodes says. --step defaults to the
newest step that has episodes. --eval shows the newest evaluation, or the evaluation of the weights after --step steps,
and --failed only the episodes that do not pass. --tasks prints a line for each task in their place, of tasks without
recorded conversations, too: how many of its samples are usable, how many pass, and their mean reward.

They are read from the run's artifacts, on its claim or at its URL, by a pod that this command starts with the
operator's image and deletes again; that requires Kubernetes' role edit. It works while a run trains, while it is
suspended and after its end.`

const transcriptsExample = `  kubectl tinker transcripts arithmetic
  kubectl tinker transcripts arithmetic --list
  kubectl tinker transcripts arithmetic --eval --failed
  kubectl tinker transcripts arithmetic --eval --tasks -o plain | sort -k5 -n | head
  kubectl tinker transcripts arithmetic --step 12 --open
  kubectl tinker transcripts arithmetic --step 12 --save step-12.html
  kubectl tinker transcripts arithmetic --step 12 -o json | jq '.groups[].episodes[].reward'`

type flags struct {
	step       int64
	list, open bool
	// evaluation shows an evaluation, and failed only the episodes that do not pass.
	evaluation, failed bool
	// tasks prints a line for each task.
	tasks       bool
	save, image string
	format      *output.Format
}

// New returns the command that shows the transcript of a step.
func New(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f flags
	command := cluster.ForOneRun(&cobra.Command{
		Use: "transcripts RUN", Short: "Show the conversations of a step with their rewards", Long: transcriptsHelp,
		Example: transcriptsExample,
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
	}, func(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) error {
		return f.run(ctx, env, connection, run)
	})
	set := command.Flags()
	f.format = output.Flag(set)
	set.Int64Var(&f.step, "step", newest, "`STEP` whose conversations are shown, from 1; without it, the newest that "+
		"has a transcript")
	set.BoolVar(&f.evaluation, "eval", false, "show the evaluation of the weights after the step")
	set.BoolVar(&f.failed, "failed", false, "show the episodes that do not pass, or whose reward is not above 0 in "+
		"training")
	set.BoolVar(&f.tasks, "tasks", false, "print a line for each task in the place of its conversations")
	set.BoolVar(&f.list, "list", false, "list the steps that have a transcript")
	set.StringVar(&f.save, "save", "", "write the transcript to `FILE`: a page for a browser if its name ends with "+
		".html, or .json")
	set.BoolVar(&f.open, "open", false, "show the transcript in a browser")
	set.StringVar(&f.image, "image", "", "`IMAGE` of the pod that reads the artifacts; without it, that of the run's "+
		"newest attempt")
	_ = command.MarkFlagFilename("save", "html", "json")
	return command
}

// check refuses flags that contradict each other.
func (f flags) check() error {
	writes := f.save != "" || f.open
	switch {
	case f.step != newest && f.step < 1 && (f.step != 0 || !f.evaluation):
		return cli.Misused("--step is %d: the first step is 1", f.step)
	case f.list && (f.step != newest || writes || f.failed):
		return cli.Misused("--list shows steps, not a transcript: leave out --step, --save, --open and --failed")
	case f.tasks && (f.list || writes):
		return cli.Misused("--tasks prints no conversations: leave out --list, --save and --open")
	}
	return f.checkSave()
}

// checkSave refuses names of files without a known format.
func (f flags) checkSave() error {
	switch extension := filepath.Ext(f.save); {
	case f.save != "" && extension != ".html" && extension != ".json":
		return cli.Misused("--save is %q: give a name that ends with .html or .json", f.save)
	}
	return nil
}

func (f flags) run(ctx context.Context, env cli.IO, connection *cli.Connection,
	run *v1alpha1.TrainingRun) error {
	if err := written(run, f.tasks); err != nil {
		return err
	}
	step := f.step
	if f.list {
		step = listOnly
	}
	found, err := ask(ctx, env, connection, run, f.image, question{step: step, evaluation: f.evaluation})
	if err != nil {
		return err
	}
	if f.list {
		return printSteps(env, *f.format, run, found.Steps)
	}
	decoded, err := chosen(run, f.step, found)
	if err != nil {
		return err
	}
	if f.failed {
		decoded.Failed()
	}
	if f.tasks {
		return printTasks(env, *f.format, decoded)
	}
	if note := unrecorded(decoded); note != "" {
		fmt.Fprintln(env.Stderr, note)
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return fmt.Errorf("encoding the transcript: %w", err)
	}
	return f.show(ctx, env, run.Name, decoded, encoded)
}

// Newest stands for the newest step that has a transcript, or the newest evaluation.
const Newest = newest

// Evaluation returns the newest evaluation of a run, or the evaluation of the weights after a step, from its artifacts.
func Evaluation(ctx context.Context, env cli.IO, connection *cli.Connection, run *v1alpha1.TrainingRun,
	step int64) (transcript.Step, error) {
	if err := written(run, true); err != nil {
		return transcript.Step{}, err
	}
	found, err := ask(ctx, env, connection, run, "", question{step: step, evaluation: true})
	if err != nil {
		return transcript.Step{}, err
	}
	return chosen(run, step, found)
}

// Lines returns the newest lines of a run's metrics.jsonl, and the matching lines of its evaluations.jsonl, from its
// artifacts. A pod reads them, with the image of the run's newest attempt unless another is named.
func Lines(ctx context.Context, env cli.IO, connection *cli.Connection, run *v1alpha1.TrainingRun, image string,
	lines int) (delivery.Delivery, error) {
	return ask(ctx, env, connection, run, image, question{lines: lines})
}

// newest and listOnly are values of the flag --step of the program in the pod.
const (
	newest   = -1
	listOnly = -2
)

// question is a question to a pod: the transcript of a step or of its evaluation, or the newest lines of metrics.jsonl.
type question struct {
	step       int64
	evaluation bool
	lines      int
}

// args returns the arguments of the program in the pod.
func (q question) args() []string {
	if q.lines > 0 {
		return []string{"--lines=" + strconv.Itoa(q.lines)}
	}
	args := []string{"--step=" + strconv.FormatInt(q.step, 10)}
	if q.evaluation {
		args = append(args, "--evaluation")
	}
	return args
}

// ask asks a pod a question.
func ask(ctx context.Context, env cli.IO, connection *cli.Connection, run *v1alpha1.TrainingRun, image string,
	asked question) (delivery.Delivery, error) {
	reader, err := artifacts.NewReader(env, connection, image)
	if err != nil {
		return delivery.Delivery{}, err
	}
	return reader.Ask(ctx, run, asked.args())
}

// written returns an error if the spec of a run asks for no transcripts. The error says how to get them. results says
// that results without conversations are enough.
func written(run *v1alpha1.TrainingRun, results bool) error {
	then := "suspend the run and resume it; its later steps then have transcripts"
	if status.RunFinished(run) {
		then = fmt.Sprintf("in another run: this one is over, and kubectl tinker fork %s --set PATH=VALUE makes one from "+
			"its checkpoint", run.Name)
	}
	switch a := run.Spec.Artifacts; {
	case a == nil:
		return fmt.Errorf("run %q has no spec.artifacts, and so no transcripts: set spec.artifacts, %s", run.Name, then)
	case a.Episodes == v1alpha1.EpisodesNone:
		return fmt.Errorf("run %q records no episodes, since spec.artifacts.episodes is None: set Groups or All, %s",
			run.Name, then)
	case a.Episodes != v1alpha1.EpisodesAll && ptr.Deref(a.GroupsPerStep, 1) == 0 && !results:
		return fmt.Errorf("run %q records no conversations, since spec.artifacts.groupsPerStep is 0: raise it, %s",
			run.Name, then)
	}
	return nil
}

// unrecorded says how many tasks of an evaluation are shown without their conversations; empty if there are none.
func unrecorded(evaluation transcript.Step) string {
	if len(evaluation.Groups) >= len(evaluation.Tasks) {
		return ""
	}
	return fmt.Sprintf("%d of %d tasks have recorded conversations: spec.artifacts.episodes All, or a larger "+
		"groupsPerStep, records more; --tasks lists the results of all", len(evaluation.Groups), len(evaluation.Tasks))
}

// chosen decodes the transcript of a step.
func chosen(run *v1alpha1.TrainingRun, step int64, found delivery.Delivery) (transcript.Step, error) {
	var decoded transcript.Step
	switch {
	case len(found.Transcript) > 0:
		if err := json.Unmarshal(found.Transcript, &decoded); err != nil {
			return decoded, fmt.Errorf("decoding the transcript: %w", err)
		}
		return decoded, nil
	case len(found.Steps) == 0 && status.RunFinished(run):
		return decoded, fmt.Errorf("run %q has no transcript, and is over: none of its steps was recorded; kubectl tinker "+
			"metrics %s shows its figures", run.Name, run.Name)
	case len(found.Steps) == 0:
		return decoded, fmt.Errorf("run %q has no transcript yet: a step has one once it is committed; kubectl tinker why "+
			"%s says what the run waits for", run.Name, run.Name)
	}
	return decoded, fmt.Errorf("run %q has no transcript of step %d: choose one of %s", run.Name, step,
		ranges(found.Steps))
}

// show prints the transcript, or writes or opens the requested file.
func (f flags) show(ctx context.Context, env cli.IO, run string, step transcript.Step, encoded []byte) error {
	name := f.save
	if name == "" && f.open {
		dir, err := os.MkdirTemp("", "kubectl-tinker-transcripts-")
		if err != nil {
			return fmt.Errorf("making a folder for the page: %w", err)
		}
		name = filepath.Join(dir, fmt.Sprintf("%s-s%d.html", run, step.Step))
	}
	if name == "" {
		return f.print(env, step)
	}
	data := bytes.TrimSpace(encoded)
	if filepath.Ext(name) == ".html" {
		data = page.Render(step)
	}
	if err := atomicfile.WriteDurable(name, 0o644, append(data, '\n')); err != nil {
		return fmt.Errorf("writing the transcript: %w", err)
	}
	fmt.Fprintln(env.Stdout, name)
	if !f.open {
		return nil
	}
	return Open(ctx, name)
}

// Open opens a file or an address in the browser of the desktop.
func Open(ctx context.Context, name string) error {
	program := map[string][]string{"darwin": {"open"},
		"windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if program == nil {
		program = []string{"xdg-open"}
	}
	if err := exec.CommandContext(ctx, program[0], append(program[1:], name)...).Run(); err != nil {
		return fmt.Errorf("opening a browser: %w: open %s yourself", err, name)
	}
	return nil
}

// episodeHeader names the fields of a plain line, which is an episode.
var episodeHeader = []string{"STEP", "SLOT", "ENVIRONMENT", "EPISODE", "REWARD", "OUTCOME", "STOP REASON"}

func (f flags) print(env cli.IO, step transcript.Step) error {
	if *f.format == output.Table {
		Print(env.Stdout, step)
		return nil
	}
	result := Tabulate(step)
	result.Value = step
	return output.Print(env, *f.format, result)
}

// Tabulate returns a row for each episode of steps.
func Tabulate(steps ...transcript.Step) output.Result {
	result := output.Result{Header: episodeHeader, Value: steps}
	for _, step := range steps {
		for _, g := range step.Groups {
			for _, e := range g.Episodes {
				result.Rows = append(result.Rows, []string{
					strconv.FormatInt(step.Step, 10), strconv.FormatInt(g.Slot, 10), output.Safe(g.Environment),
					strconv.Itoa(e.Index), output.Number(&e.Reward), output.Safe(e.Outcome), output.Safe(e.StopReason),
				})
			}
		}
	}
	return result
}

func printSteps(env cli.IO, format output.Format, run *v1alpha1.TrainingRun, steps []int64) error {
	if format == output.Table {
		if len(steps) == 0 {
			fmt.Fprintf(env.Stderr, "run %q has no transcript yet\n", run.Name)
			return nil
		}
		fmt.Fprintf(env.Stdout, "steps %s\n", ranges(steps))
		return nil
	}
	result := output.Result{Header: []string{"STEP"}, Value: steps}
	for _, step := range steps {
		result.Rows = append(result.Rows, []string{strconv.FormatInt(step, 10)})
	}
	return output.Print(env, format, result)
}

// ranges returns sorted steps as 1-5, 7, 9-12.
func ranges(steps []int64) string {
	var parts []string
	for first := 0; first < len(steps); {
		last := first
		for last+1 < len(steps) && steps[last+1] == steps[last]+1 {
			last++
		}
		part := strconv.FormatInt(steps[first], 10)
		if last > first {
			part += "-" + strconv.FormatInt(steps[last], 10)
		}
		parts = append(parts, part)
		first = last + 1
	}
	return strings.Join(parts, ", ")
}
