// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"reflect"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"

	"github.com/tinker-operator/tinker-operator/internal/environment/verify/mathtext"
)

// celReply is the variable reply.
type celReply struct {
	Text      string `cel:"text"`
	Truncated bool   `cel:"truncated"`
	Malformed bool   `cel:"malformed"`
}

// celEpisode is the variable episode.
type celEpisode struct {
	Turns         int64 `cel:"turns"`
	ToolCalls     int64 `cel:"toolCalls"`
	SampledTokens int64 `cel:"sampledTokens"`
}

const mathEquals = "mathEquals"

var replyType, episodeType = cel.ObjectType("verify.celReply"), cel.ObjectType("verify.celEpisode")

// newCELEnv returns the variables and functions of expressions. docs/rewards.md lists them.
func newCELEnv() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.OptionalTypes(), // It comes first, since it cannot follow NativeTypes.
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[celReply](), reflect.TypeFor[celEpisode]()),
		cel.Variable("row", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("reply", replyType),
		cel.Variable("episode", episodeType),
		ext.Strings(), ext.Math(), ext.Sets(),
	}
	for _, f := range textFunctions {
		options = append(options, f.declare())
	}
	options = append(options, cel.Function(mathEquals, cel.MemberOverload("string_"+mathEquals,
		[]*cel.Type{cel.StringType, cel.StringType}, cel.BoolType, cel.BinaryBinding(func(a, b ref.Val) ref.Val {
			return types.Bool(mathtext.Equal(string(a.(types.String)), string(b.(types.String))))
		}))))
	return cel.NewEnv(options...)
}

// textFunction is a function of a text or of the reply's text.
type textFunction struct {
	name   string
	result *cel.Type
	// argument means that there is an argument, which is a string.
	argument bool
	call     func(text, argument string) any
}

var textFunctions = []textFunction{
	{name: "lastNumber", result: cel.DoubleType, call: func(text, _ string) any { return lastNumber(text) }},
	{name: "numbers", result: cel.ListType(cel.DoubleType), call: func(text, _ string) any {
		values := []float64{}
		for _, written := range numbersIn(text) {
			values = append(values, parseFloat(written))
		}
		return values
	}},
	{name: "lastLine", result: cel.StringType, call: func(text, _ string) any { return lastLine(text) }},
	{name: "boxed", result: cel.StringType, call: func(text, _ string) any {
		content,
			_ := mathtext.Boxed(text)
		return content
	}},
	{name: "tag", result: cel.StringType, argument: true, call: func(text, name string) any {
		content,
			_ := lastTag(text, name)
		return content
	}},
	{name: "isJSON", result: cel.BoolType, call: func(text, _ string) any { _, ok := findJSON(text); return ok }},
	// A reply without JSON has the fields of an empty object, so that has() and .? work on it.
	{name: "json", result: cel.DynType, call: func(text, _ string) any {
		value, ok := findJSON(text)
		if !ok {
			return map[string]any{}
		}
		return plain(value)
	}},
}

// declare declares the function as a member of texts and of the reply.
func (f textFunction) declare() cel.EnvOption {
	var overloads []cel.FunctionOpt
	for id, receiver := range map[string]*cel.Type{"string_": cel.StringType, "reply_": replyType} {
		arguments := []*cel.Type{receiver}
		if f.argument {
			arguments = append(arguments, cel.StringType)
		}
		overloads = append(overloads, cel.MemberOverload(id+f.name, arguments, f.result, cel.FunctionBinding(f.evaluate)))
	}
	return cel.Function(f.name, overloads...)
}

func (f textFunction) evaluate(arguments ...ref.Val) ref.Val {
	argument := ""
	if f.argument {
		argument = string(arguments[1].(types.String))
	}
	return types.DefaultTypeAdapter.NativeToValue(f.call(textOf(arguments[0]), argument))
}

// textOf returns the text of a receiver.
func textOf(value ref.Val) string {
	switch v := value.Value().(type) {
	case string:
		return v
	case celReply:
		return v.Text
	default:
		return ""
	}
}

// extensions are the functions of CEL's extensions whose effort grows with the text.
var extensions = []string{"replace", "split", "join", "lowerAscii", "upperAscii", "reverse", "format", "trim",
	"substring", "strings.quote"}

// textCost is the cost of functions of texts, by the lengths of the arguments and the result. CEL knows the cost of
// all other functions.
type textCost struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (textCost) CallCost(function, _ string, arguments []ref.Val, result ref.Val) *uint64 {
	const charactersPerUnit = 10
	isOurs := slices.ContainsFunc(textFunctions, func(f textFunction) bool { return f.name == function })
	if !isOurs && function != mathEquals && !slices.Contains(extensions, function) {
		return nil
	}
	size := sizeOf(result)
	for _, argument := range arguments {
		size += sizeOf(argument)
	}
	cost := 1 + uint64(size)/charactersPerUnit
	if function == mathEquals {
		cost = 100 + uint64(size)
	}
	return &cost
}

// sizeOf returns the length of a text or a collection.
func sizeOf(value ref.Val) int {
	switch v := value.(type) {
	case types.String:
		return len(v)
	case traits.Sizer:
		return int(v.Size().(types.Int))
	default:
		return len(textOf(value))
	}
}
