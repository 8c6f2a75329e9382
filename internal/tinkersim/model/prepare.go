// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"math"
	"slices"
)

// prepared is a batch that was checked and laid out for a loss.
type prepared struct {
	// sequences are the sequences to compute, in native tokens, and targets has the targets of each.
	sequences [][]int32
	targets   []sequenceTargets
	datums    []preparedDatum
	value     func(logprob float64, e element) (loss, slope float64)
	// bySequence says that value needs the ratios of sequences.
	bySequence bool
}

// preparedDatum has its targets row-major: perPosition for each position.
type preparedDatum struct {
	shape       []int
	perPosition int
	targets     []int32
	elements    []element
}

// prepare checks a batch against a loss. All its errors are UserErrors.
func (b *BaseModel) prepare(batch []Datum, loss Loss) (prepared, error) {
	kind, found := lossKinds[loss.Name]
	if !found {
		return prepared{}, userErrorf("the loss %q is not known", loss.Name)
	}
	settings, err := kind.settings(loss)
	if err != nil {
		return prepared{}, err
	}
	if len(batch) == 0 {
		return prepared{}, userErrorf("the batch has no data")
	}
	p := prepared{value: kind.value, bySequence: kind.bySequence}
	for i, d := range batch {
		ready, err := kind.prepareDatum(d, settings)
		if err == nil {
			p.datums = append(p.datums, ready)
			err = b.appendSequences(&p, d.Tokens)
		}
		if err != nil {
			return prepared{}, userErrorf("datum %d of the batch for %s: %v", i, loss.Name, err)
		}
	}
	return p, nil
}

// settings returns the initial element of every target.
func (k lossKind) settings(loss Loss) (element, error) {
	values := make(map[string]float64, len(k.defaults))
	for name, v := range k.defaults {
		values[name] = v
	}
	for name, v := range loss.Config {
		if _, known := k.defaults[name]; !known {
			return element{}, userErrorf("the loss %s has no setting %q", loss.Name, name)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return element{}, userErrorf("the setting %s of %s is not finite", name, loss.Name)
		}
		values[name] = v
	}
	if values[inputClipLow] > values[inputClipHigh] {
		return element{}, userErrorf("the lower clip threshold of %s is above the upper one", loss.Name)
	}
	return element{
		weight: 1, low: values[inputClipLow], high: values[inputClipHigh], beta: values[settingBeta], mask: 1,
	}, nil
}

func (k lossKind) prepareDatum(d Datum, settings element) (preparedDatum, error) {
	if err := k.checkInputNames(d.Inputs); err != nil {
		return preparedDatum{}, err
	}
	ready, err := k.targets(d)
	if err != nil {
		return preparedDatum{}, userErrorf("input %s: %v", inputTargets, err)
	}
	ready.elements = slices.Repeat([]element{settings}, len(ready.targets))
	for _, name := range slices.Concat(k.required, k.optional) {
		tensor, given := d.Inputs[name]
		if !given {
			continue
		}
		if err := ready.fill(name, tensor); err != nil {
			return preparedDatum{}, userErrorf("input %s: %v", name, err)
		}
	}
	return ready, nil
}

// checkInputNames checks that the loss requires or permits the inputs.
func (k lossKind) checkInputNames(inputs map[string]Tensor) error {
	required := append([]string{inputTargets}, k.required...)
	for _, name := range required {
		if _, given := inputs[name]; !given {
			return userErrorf("input %s is missing", name)
		}
	}
	var unexpected []string
	for name := range inputs {
		if !slices.Contains(required, name) && !slices.Contains(k.optional, name) {
			unexpected = append(unexpected, name)
		}
	}
	if len(unexpected) > 0 {
		slices.Sort(unexpected)
		return userErrorf("input %s is unexpected", unexpected[0])
	}
	return nil
}

var errRealTargets = errors.New("its elements are not integers")

// targets decodes target_tokens: one token for each position, or several if the loss allows it.
func (k lossKind) targets(d Datum) (preparedDatum, error) {
	tensor := d.Inputs[inputTargets]
	if len(tensor.Float) > 0 {
		return preparedDatum{}, errRealTargets
	}
	shape := tensor.shape()
	want := []int{len(d.Tokens)}
	if k.many && len(shape) == 2 {
		want = append(want, shape[1])
	}
	if err := tensor.check(want); err != nil {
		return preparedDatum{}, err
	}
	ready := preparedDatum{shape: want, perPosition: 1, targets: make([]int32, len(tensor.Int))}
	if len(want) == 2 {
		ready.perPosition = want[1]
	}
	for i, token := range tensor.Int {
		if token < 0 || token > math.MaxInt32 {
			return preparedDatum{}, userErrorf("token %d is not in the vocabulary", token)
		}
		ready.targets[i] = int32(token)
	}
	return ready, nil
}

// fill sets one field of all elements from an input.
func (p *preparedDatum) fill(name string, tensor Tensor) error {
	if err := tensor.check(p.shape); err != nil {
		return err
	}
	for i, v := range tensor.reals() {
		value := float64(v)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return userErrorf("element %d is not finite", i)
		}
		*p.elements[i].field(name) = value
	}
	return nil
}

// field returns the field that an input sets.
func (e *element) field(name string) *float64 {
	switch name {
	case inputWeights:
		return &e.weight
	case inputLogprobs:
		return &e.sampled
	case inputAdvantages:
		return &e.advantage
	case inputRatioMask:
		return &e.mask
	case inputClipLow:
		return &e.low
	default:
		return &e.high
	}
}

// setRatios sets the ratio of each sequence: the geometric mean of the ratios of its tokens, weighted by their masks. A
// sequence whose masks are all 0 has the ratio 1.
func (p prepared) setRatios(logprobs [][]float32) {
	for i, d := range p.datums {
		sum, count := 0.0, 0.0
		for j, e := range d.elements {
			sum += e.mask * (float64(logprobs[i][j]) - e.sampled)
			count += e.mask
		}
		ratio := 1.0
		if count > 0 {
			ratio = math.Exp2(sum / count * math.Log2E)
		}
		for j := range d.elements {
			d.elements[j].sequence = ratio
		}
	}
}
