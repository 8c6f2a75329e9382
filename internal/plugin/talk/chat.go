// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package talk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/serving"
)

const chatHelp = `kubectl tinker chat talks to a checkpoint of a run in the terminal. Each line is a message;
the whole conversation is
sent with it. /reset begins a new conversation, /system TEXT begins one with another system prompt, and /quit or the end
of the input ends the command. The system prompt is --system, or the prompt of the run's environment.

With --compare, another checkpoint answers the same messages, each in a conversation of its own: a STEP, best, or base
for the base model. Without a terminal, the lines of the standard input are messages, and the replies are plain lines.`

const chatExample = `  kubectl tinker chat arithmetic
  kubectl tinker chat arithmetic --best --compare base
  kubectl tinker chat arithmetic --system "Be brief." --temperature 0
  echo "3+4=?" | kubectl tinker chat arithmetic --step 40 --compare 10`

type chatFlags struct {
	choice
	compare, system string
	systemGiven     func() bool
}

// NewChat returns the command that talks to a checkpoint.
func NewChat(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f chatFlags
	command := &cobra.Command{
		Use: "chat RUN|CHECKPOINT", Short: "Talk to a checkpoint in the terminal", Long: chatHelp, Example: chatExample,
		Args: cli.Args(1, 1, "the name of a RUN or a tinker:// path"), ValidArgsFunction: cluster.CompleteRuns(1),
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), env, cluster.Connect, args[0])
		},
	}
	flags := command.Flags()
	f.add(flags)
	flags.StringVar(&f.compare, "compare", "", "`CHECKPOINT` that answers beside the first one: a step, best or base")
	flags.StringVar(&f.system, "system", "", "`TEXT` of the system prompt; empty for none")
	f.systemGiven = func() bool { return flags.Changed("system") }
	return command
}

// speaker is a checkpoint with its conversation.
type speaker struct {
	name     string
	model    serving.Model
	messages []chat.Message
}

// talk is a session of the command.
type talk struct {
	env      cli.IO
	speakers []*speaker
	defaults serving.Defaults
	system   string
	// terminal says that a person reads and writes.
	terminal bool
}

func (f *chatFlags) run(ctx context.Context, env cli.IO, connect func() (*cli.Connection, error),
	name string) (err error) {
	from, err := f.open(ctx, env, connect, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close(ctx)) }()
	t := &talk{env: env, defaults: from.defaults, system: f.system}
	if file, ok := env.Stdin.(*os.File); ok {
		t.terminal = term.IsTerminal(int(file.Fd()))
	}
	if t.speakers, err = f.speakers(ctx, from); err != nil {
		return err
	}
	if !f.systemGiven() {
		if t.system, err = from.systemPrompt(ctx); err != nil {
			return err
		}
	}
	t.reset()
	return t.converse(ctx)
}

// speakers returns the checkpoints that answer.
func (f *chatFlags) speakers(ctx context.Context, from *source) ([]*speaker, error) {
	first, err := from.weights(ctx, f.step, f.best)
	if err != nil {
		return nil, err
	}
	all := []*speaker{{name: nameOf(first), model: from.modelWith(first)}}
	if f.compare == "" {
		return all, nil
	}
	second := from.base()
	if f.compare != baseName {
		step, err := strconv.ParseInt(f.compare, 10, 64)
		if f.compare == bestName {
			step, err = -1, nil
		}
		if err != nil || from.kube == nil {
			return nil, cli.Misused("--compare is %q: give a step of the run, best or base", f.compare)
		}
		if second, err = from.weights(ctx, step, f.compare == bestName); err != nil {
			return nil, err
		}
	}
	return append(all, &speaker{name: nameOf(second), model: from.modelWith(second)}), nil
}

// nameOf returns the name of weights for people.
func nameOf(w serving.Weights) string {
	switch {
	case w.Path == "":
		return baseName
	case w.Step == 0:
		return "reply"
	}
	return fmt.Sprintf("step %d", w.Step)
}

// systemPrompt returns the system prompt of the run's first environment. It is empty if the prompt depends on the
// task.
func (s *source) systemPrompt(ctx context.Context) (string, error) {
	names := desired.References(s.run)
	if s.kube == nil || len(names) == 0 {
		return "", nil
	}
	var environment v1alpha1.RewardEnvironment
	key := client.ObjectKey{Namespace: s.run.Namespace, Name: names[0]}
	if err := s.kube.Get(ctx, key, &environment); err != nil {
		return "", fmt.Errorf("reading the system prompt of RewardEnvironment %q: %w: give one with --system", names[0], err)
	}
	text := ""
	if i := environment.Spec.Interaction; i != nil && i.ToolUse != nil {
		text = i.ToolUse.SystemPrompt
	}
	if d := environment.Spec.Dataset; text == "" && d != nil {
		text = d.SystemPrompt
	}
	if strings.Contains(text, "$(") {
		fmt.Fprintf(s.env.Stderr, "the system prompt of %s depends on the task and is left out: give one with --system\n",
			names[0])
		return "", nil
	}
	return text, nil
}

// reset begins new conversations.
func (t *talk) reset() {
	for _, s := range t.speakers {
		s.messages = nil
		if t.system != "" {
			s.messages = []chat.Message{{Role: chat.RoleSystem, Content: t.system}}
		}
	}
}

// converse answers line by line until the end of the input.
func (t *talk) converse(ctx context.Context) error {
	const longest = 1 << 20
	lines := bufio.NewScanner(t.env.Stdin)
	lines.Buffer(nil, longest)
	for t.prompt(); lines.Scan(); t.prompt() {
		line := strings.TrimRight(lines.Text(), "\r")
		command, argument, _ := strings.Cut(line, " ")
		switch command {
		case "":
			continue
		case "/quit":
			return nil
		case "/reset":
			t.reset()
			continue
		case "/system":
			t.system = strings.TrimSpace(argument)
			t.reset()
			continue
		case "/help":
			fmt.Fprintln(t.env.Stderr, "/reset, /system TEXT, /quit; every other line is a message")
			continue
		}
		if err := t.say(ctx, line); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading messages: %w", err)
	}
	return nil
}

func (t *talk) prompt() {
	if t.terminal {
		fmt.Fprint(t.env.Stdout, "> ")
	}
}

// say sends a message to all speakers and prints their replies. The replies are sampled concurrently, and printed one
// after the other. A message that the endpoint refuses does not enter the conversation.
func (t *talk) say(ctx context.Context, line string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replies := make([]*spoken, len(t.speakers))
	for i, s := range t.speakers {
		replies[i] = &spoken{pieces: make(chan chat.Part), done: make(chan struct{})}
		asked := append(slices.Clone(s.messages), chat.Message{Role: chat.RoleUser, Content: line})
		go replies[i].sample(ctx, s.model, asked, t.defaults)
	}
	for i, reply := range replies {
		s := t.speakers[i]
		t.print(s, reply)
		switch {
		case reply.err != nil && ctx.Err() != nil:
			return ctx.Err()
		case reply.err != nil:
			var refused *dialect.Error
			message := reply.err.Error()
			if errors.As(reply.err, &refused) {
				message = refused.Message
			}
			fmt.Fprintf(t.env.Stderr, "%s does not answer: %s\n", s.name, output.Safe(message))
			if !t.terminal {
				return cli.ErrSilent
			}
		default:
			s.messages = append(s.messages, chat.Message{Role: chat.RoleUser, Content: line}, reply.answer.Message)
		}
	}
	return nil
}

// spoken is a reply that is being sampled.
type spoken struct {
	pieces chan chat.Part
	done   chan struct{}
	answer serving.Answer
	err    error
}

func (r *spoken) sample(ctx context.Context, m serving.Model, messages []chat.Message, d serving.Defaults) {
	defer close(r.done)
	defer close(r.pieces)
	ids, err := m.Prompt(messages, nil)
	if err != nil {
		r.err = err
		return
	}
	// A speaker whose turn has not come continues to sample: its pieces wait here.
	waiting := make(chan chat.Part, d.MaxTokens+1)
	go func() {
		defer close(waiting)
		r.answer, r.err = m.Reply(ctx, serving.Ask{Prompt: ids, MaxTokens: d.MaxTokens, Temperature: d.Temperature,
			TopP: d.TopP, TopK: d.TopK}, func(piece chat.Part) error {
			waiting <- piece
			return nil
		})
	}()
	for piece := range waiting {
		select {
		case r.pieces <- piece:
		case <-ctx.Done():
		}
	}
}

// print prints a reply as it comes. The text of a model never controls the terminal.
func (t *talk) print(s *speaker, reply *spoken) {
	labelled := len(t.speakers) > 1 || t.terminal
	if labelled {
		fmt.Fprintf(t.env.Stdout, "%s: ", s.name)
	}
	thinking := false
	for piece := range reply.pieces {
		if piece.Thinking != thinking {
			mark := "\n"
			if piece.Thinking {
				mark = "(thinking) "
			}
			fmt.Fprint(t.env.Stdout, mark)
			thinking = piece.Thinking
		}
		fmt.Fprint(t.env.Stdout, safeLines(piece.Text))
	}
	<-reply.done
	for _, call := range reply.answer.Message.Calls {
		fmt.Fprintf(t.env.Stdout, "\n(calls %s(%s))", output.Safe(call.Name), output.Safe(call.Arguments))
	}
	if reply.err == nil && reply.answer.Stop == dialect.StopLength {
		fmt.Fprintf(t.env.Stdout, "\n(cut at %d tokens: see --max-tokens)", len(reply.answer.Tokens))
	}
	fmt.Fprintln(t.env.Stdout)
}

// safeLines returns text of a model without characters that control a terminal, except line breaks and tabs.
func safeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = output.Clean(line)
	}
	return strings.Join(lines, "\n")
}
