// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"fmt"
	"slices"
)

// DType is the element type of a tensor on the wire.
type DType string

// The element types. Clients send only float32 and int64.
const (
	Float32  DType = "float32"
	Int64    DType = "int64"
	Int32    DType = "int32"
	BFloat16 DType = "bfloat16"
)

// size returns the bytes of an element, or 0 for an unknown type.
func (d DType) size() int {
	switch d {
	case Float32, Int32:
		return 4
	case Int64:
		return 8
	case BFloat16:
		return 2
	}
	return 0
}

// isInteger reports whether the elements are in Tensor.Int.
func (d DType) isInteger() bool { return d == Int64 || d == Int32 }

// Tensor is a row-major tensor, dense or in compressed sparse rows. Elements of int32 are widened to int64, and
// elements of bfloat16 to float32.
type Tensor struct {
	DType DType
	// Shape is the size of each dimension; empty for one dimension of all elements.
	Shape []int64
	// Int holds the elements of integer types, and Float the elements of the others. A sparse tensor has only the elements
	// at the positions in Sparse; all others are 0.
	Int   []int64
	Float []float32
	// Sparse is nil for a dense tensor.
	Sparse *Sparse
}

// Sparse holds the positions of the elements of a matrix: row r has the elements from Rows[r] up to Rows[r+1], in the
// columns Cols.
type Sparse struct {
	Rows []int64
	Cols []int64
}

// Floats returns a dense tensor of float32, with one dimension if there is no shape.
func Floats(values []float32, shape ...int64) Tensor {
	return Tensor{DType: Float32, Shape: oneDimension(shape, len(values)), Float: values}
}

// Ints returns a dense tensor of int64, with one dimension if there is no shape.
func Ints(values []int64, shape ...int64) Tensor {
	return Tensor{DType: Int64, Shape: oneDimension(shape, len(values)), Int: values}
}

func oneDimension(shape []int64, elements int) []int64 {
	if len(shape) == 0 {
		return []int64{int64(elements)}
	}
	return shape
}

// Len returns the number of elements in Int or Float.
func (t Tensor) Len() int {
	if t.DType.isInteger() {
		return len(t.Int)
	}
	return len(t.Float)
}

// size estimates the bytes of the tensor on the wire, as the limit of a chunk counts them.
func (t Tensor) size() int64 {
	size := int64(t.Len() * t.DType.size())
	if t.Sparse != nil {
		size += 8 * int64(len(t.Sparse.Rows)+len(t.Sparse.Cols))
	}
	return size
}

// Validate checks that the elements fit the type and the shape.
func (t Tensor) Validate() error {
	if t.DType.size() == 0 {
		return fmt.Errorf("dtype %q is unknown", t.DType)
	}
	if (t.DType.isInteger() && t.Float != nil) || (!t.DType.isInteger() && t.Int != nil) {
		return fmt.Errorf("elements are not of dtype %s", t.DType)
	}
	if t.Sparse != nil {
		return t.validateSparse()
	}
	if len(t.Shape) == 0 {
		return nil
	}
	want, err := elements(t.Shape)
	if err != nil {
		return err
	}
	if want != int64(t.Len()) {
		return fmt.Errorf("shape %v does not have %d elements", t.Shape, t.Len())
	}
	return nil
}

func (t Tensor) validateSparse() error {
	if len(t.Shape) != 2 {
		return fmt.Errorf("sparse shape %v does not have two dimensions", t.Shape)
	}
	if _, err := elements(t.Shape); err != nil {
		return err
	}
	rows, cols := t.Sparse.Rows, t.Sparse.Cols
	if int64(len(rows)) != t.Shape[0]+1 || len(cols) != t.Len() {
		return fmt.Errorf("sparse indices do not fit shape %v and %d elements", t.Shape, t.Len())
	}
	if rows[0] != 0 || rows[len(rows)-1] != int64(len(cols)) || !slices.IsSorted(rows) {
		return fmt.Errorf("sparse row offsets do not rise from 0 to %d", len(cols))
	}
	for _, col := range cols {
		if col < 0 || col >= t.Shape[1] {
			return fmt.Errorf("sparse column %d is outside shape %v", col, t.Shape)
		}
	}
	return nil
}

// maxElements limits the size of tensors with untrusted shapes.
const maxElements = 1 << 28

// elements returns the number of elements of a shape, unless it is negative or too large.
func elements(shape []int64) (int64, error) {
	n := int64(1)
	for _, size := range shape {
		if size < 0 || size > maxElements {
			return 0, fmt.Errorf("shape %v is out of range", shape)
		}
		if n *= size; n > maxElements {
			return 0, fmt.Errorf("shape %v is out of range", shape)
		}
	}
	return n, nil
}

// Dense returns the tensor without sparse encoding.
func (t Tensor) Dense() (Tensor, error) {
	if err := t.Validate(); err != nil {
		return Tensor{}, err
	}
	if t.Sparse == nil {
		return t, nil
	}
	dense := Tensor{DType: t.DType, Shape: t.Shape}
	if t.DType.isInteger() {
		dense.Int = scatter(t.Int, t.Sparse, t.Shape)
		return dense, nil
	}
	dense.Float = scatter(t.Float, t.Sparse, t.Shape)
	return dense, nil
}

func scatter[T any](values []T, at *Sparse, shape []int64) []T {
	out := make([]T, shape[0]*shape[1])
	for row := range shape[0] {
		for i := at.Rows[row]; i < at.Rows[row+1]; i++ {
			out[row*shape[1]+at.Cols[i]] = values[i]
		}
	}
	return out
}

// tensorJSON is the JSON form of a tensor.
type tensorJSON struct {
	Data  json.RawMessage `json:"data"`
	DType DType           `json:"dtype"`
	Shape []int64         `json:"shape,omitempty"`
	Rows  []int64         `json:"sparse_crow_indices,omitempty"`
	Cols  []int64         `json:"sparse_col_indices,omitempty"`
}

// MarshalJSON encodes the form of older clients, which is a list of numbers.
func (t Tensor) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(slices.Concat(t.Float, []float32{}))
	if t.DType.isInteger() {
		data, err = json.Marshal(slices.Concat(t.Int, []int64{}))
	}
	if err != nil {
		return nil, err
	}
	out := tensorJSON{Data: data, DType: t.DType, Shape: t.Shape}
	if t.Sparse != nil {
		out.Rows, out.Cols = t.Sparse.Rows, t.Sparse.Cols
	}
	return json.Marshal(out)
}

// UnmarshalJSON decodes the form of older clients, and validates it.
func (t *Tensor) UnmarshalJSON(data []byte) error {
	var in tensorJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	out := Tensor{DType: in.DType, Shape: in.Shape}
	if in.Rows != nil {
		out.Sparse = &Sparse{Rows: in.Rows, Cols: in.Cols}
	}
	var err error
	if in.DType.isInteger() {
		err = json.Unmarshal(in.Data, &out.Int)
	} else {
		err = json.Unmarshal(in.Data, &out.Float)
	}
	if err != nil {
		return fmt.Errorf("decoding tensor data: %w", err)
	}
	if err := out.Validate(); err != nil {
		return err
	}
	*t = out
	return nil
}
