// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import "math/big"

// bound returns a bound of a slice, limited to the length as in Python.
func (e *evaluator) bound(v any, usual, low, high, size int) int {
	if v == nil {
		return usual
	}
	n := asInt(v)
	if n == nil {
		e.fail("slice indices must be integers or None")
	}
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, big.NewInt(int64(size)))
	}
	switch {
	case n.Cmp(big.NewInt(int64(low))) < 0:
		return low
	case n.Cmp(big.NewInt(int64(high))) > 0:
		return high
	}
	return int(n.Int64())
}

// slice returns of[start:stop:step].
func (e *evaluator) slice(of, start, stop, step any) any {
	e.defined(of)
	by := 1
	if step != nil {
		n := asInt(step)
		if n == nil || n.Sign() == 0 {
			e.fail("the step of a slice must be an integer other than zero")
		}
		by = int(max(min(new(big.Int).Set(clamp(n)).Int64(), 1<<40), -1<<40))
	}
	size, ok := length(of)
	if !ok {
		e.fail("'%s' object is not subscriptable", typeName(of))
	}
	var first, last int
	if by > 0 {
		first, last = e.bound(start, 0, 0, size, size), e.bound(stop, size, 0, size, size)
	} else {
		first, last = e.bound(start, size-1, -1, size-1, size), e.bound(stop, -1, -1, size-1, size)
	}
	switch v := of.(type) {
	case str:
		e.bytes(len(v.text))
		return v.slice(first, last, by)
	case *list:
		out := &list{tuple: v.tuple}
		e.spend(size)
		for i := first; by > 0 && i < last || by < 0 && i > last; i += by {
			out.items = append(out.items, v.items[i])
		}
		return out
	case *span:
		return &span{v.start + first*v.step, v.start + last*v.step, v.step * by}
	}
	e.fail("'%s' object is not subscriptable", typeName(of))
	return nil
}

// clamp limits an integer to 64 bits.
func clamp(n *big.Int) *big.Int {
	if n.IsInt64() {
		return n
	}
	return big.NewInt(int64(n.Sign()) << 40)
}

func (s str) slice(first, last, by int) str {
	at := s.offsets()
	if by == 1 {
		if first >= last {
			return s.cut(0, 0)
		}
		return s.cut(at[first], at[last])
	}
	var out buffer
	for i := first; by > 0 && i < last || by < 0 && i > last; i += by {
		out.add(s.cut(at[i], at[i+1]))
	}
	return s.like(out.str())
}
