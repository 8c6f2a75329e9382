// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package chattemplate renders conversations by the chat template of a model. A chat template is written in the
// language of jinja2, in the dialect that transformers configures: blocks are trimmed (trim_blocks, lstrip_blocks),
// the environment is the immutable sandbox, loops have break and continue, generation is a tag, tojson does not escape
// HTML, and the functions raise_exception and strftime_now exist.
//
// Values are Python's: dicts keep their order, integers have no bound, floats print as repr prints them, and an
// undefined value prints as nothing and fails in every operation except truth, iteration, equality and defined.
//
// Each character of a string has an Origin: the template or the data that the template renders. Operations on strings
// keep it: a slice has the origins of its characters, join the origins of its parts, and replace the origins of the
// pieces. Text of numbers, booleans and none counts as the template's, because templates build special tokens with
// them (<|image_1|>). The punctuation of containers that are printed or written as JSON counts as data, as do the keys
// of messages. Callers give special tokens only to spans of FromTemplate.
//
// The package differs from jinja2 on purpose in these points:
//
//   - Expressions that consist only of constants are computed when they run. jinja2 folds them when it compiles, so
//     that a few senseless expressions differ: a slice of a number is undefined there, and {[]: 1} fails even where it
//     is never reached.
//   - The names self and lipsum do not exist, and neither do sets: subtracting the keys or items of a
//     dict, and ordering them, is refused.
//   - include, import, extends, block and autoescape are refused when a template is parsed, because a chat template
//     is one text.
//   - The filters random, urlize, xmlattr, pprint, striptags, wordwrap and filesizeformat are refused by name, and
//     so are names of characters in strings (\N{...}).
//   - strftime_now gives the date that the caller sets, not the date of the clock.
//   - Functions and generators print without their address, and lone surrogates become U+FFFD.
//   - Steps, output, and depth have bounds; jinja2 runs until memory or Python's stack ends.
package chattemplate
