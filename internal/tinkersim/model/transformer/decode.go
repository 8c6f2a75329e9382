// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

// Decoder continues sequences one token at a time, keeping keys and values. A row's results do not
// depend on the other rows. It keeps its buffers between uses and is not safe for concurrent use.
type Decoder struct {
	pass  Pass
	slots []slot
	slab  []float32

	x, normed, qkv, attended matrix
	hidden, squared, logits  matrix
	scale, probs             []float32
}

// slot is one sequence's keys (Width by room) and values (room by Width) in each layer.
type slot struct {
	room, length int
	keys, values [Layers]matrix
}

// maxPrefillRows bounds the rows of one pass over prompts, as Chunk does.
const maxPrefillRows = 256

// Start reads the prompts; room is the most tokens that sequence i will have. It leaves the logits
// after each prompt in the rows of Logits.
func (d *Decoder) Start(w *Params, prompts [][]int32, room []int) {
	d.allocate(room)
	d.resize(len(prompts))
	for first := 0; first < len(prompts); {
		next := Chunk(prompts, first, maxPrefillRows)
		d.pass.States(w, prompts[first:next])
		for i := first; i < next; i++ {
			d.load(i, d.pass.Rows(i-first))
		}
		first = next
	}
	mul(d.logits, d.normed, unembedOf(w.flat), 0)
}

// Chunk returns the end of the run of sequences from first on that have at most limit tokens together, where tokens
// shared with the sequence before count once; a run has at least one sequence. If the first sequence alone is longer
// than the limit, the limit applies to the tokens after it, so that sequences that share most of it do not compute it
// again.
func Chunk(sequences [][]int32, first, limit int) int {
	rows := len(sequences[first])
	if rows > limit {
		limit += rows
	}
	for i := first + 1; i < len(sequences); i++ {
		rows += len(sequences[i]) - commonPrefix(sequences[i], sequences[i-1])
		if rows > limit {
			return i
		}
	}
	return len(sequences)
}

// Step adds tokens[i] to the sequence slots[i] and leaves the logits after it in row i of Logits.
func (d *Decoder) Step(w *Params, slots []int, tokens []int32) {
	d.resize(len(slots))
	for i, token := range tokens {
		copy(d.x.row(i), w.flat[embedAt+int(token)*Width:])
	}
	for l := range Layers {
		d.stepLayer(layerOf(w.flat, l), l, slots)
	}
	for _, s := range slots {
		d.slots[s].length++
	}
	normalize(d.normed, d.x, d.scale)
	mul(d.logits, d.normed, unembedOf(w.flat), 0)
}

// Logits returns row i of the logits; the caller may change it.
func (d *Decoder) Logits(i int) []float32 { return d.logits.row(i) }

func (d *Decoder) stepLayer(w layer, l int, slots []int) {
	normalize(d.normed, d.x, d.scale)
	mul(d.qkv, d.normed, w.qkv, 0)
	table := rotaryTable()
	for i, s := range slots {
		at := &d.slots[s]
		row := d.qkv.row(i)
		table.rotate(row, at.length, 1)
		at.put(l, at.length, row)
		d.attend(i, at, l)
	}
	mul(d.x, d.attended, w.out, 1)
	normalize(d.normed, d.x, d.scale)
	mul(d.hidden, d.normed, w.up, 0)
	squareReLU(d.squared, d.hidden)
	mul(d.x, d.squared, w.down, 1)
}

// attend computes the attention of row i over the sequence's tokens and its own.
func (d *Decoder) attend(i int, at *slot, l int) {
	n := at.length + 1
	d.probs = resizeSlice(d.probs, n)
	probs := dense(d.probs, 1, n)
	query, out := d.qkv.slice(i, 1), d.attended.slice(i, 1)
	for head := 0; head < Width; head += headWidth {
		mul(probs, query.columns(head, headWidth), at.keys[l].slice(head, headWidth).columns(0, n), 0)
		softmax(probs.data, n, scoreScale)
		mul(out.columns(head, headWidth), probs, at.values[l].slice(0, n).columns(head, headWidth), 0)
	}
}

// put stores the key and value of a row as token number position.
func (s *slot) put(l, position int, row []float32) {
	keys := s.keys[l]
	for j, v := range row[Width : 2*Width] {
		keys.data[j*keys.stride+position] = v
	}
	copy(s.values[l].row(position), row[2*Width:])
}

// load takes the keys and values of a prompt from the pass and its last state for the logits.
func (d *Decoder) load(i int, rows []int32) {
	at := &d.slots[i]
	for l := range Layers {
		for position, row := range rows {
			at.put(l, position, d.pass.states[l].qkv.row(int(row)))
		}
	}
	at.length = len(rows)
	copy(d.normed.row(i), d.pass.last.row(int(rows[len(rows)-1])))
}

// allocate cuts the slab into slots.
func (d *Decoder) allocate(room []int) {
	total := 0
	for _, n := range room {
		total += n
	}
	d.slab = resizeSlice(d.slab, total*Layers*2*Width)
	d.slots = d.slots[:0]
	free := d.slab
	for _, n := range room {
		s := slot{room: n}
		for l := range Layers {
			s.keys[l] = dense(free, Width, n)
			s.values[l] = dense(free[n*Width:], n, Width)
			free = free[2*n*Width:]
		}
		d.slots = append(d.slots, s)
	}
}

func (d *Decoder) resize(n int) {
	d.x, d.normed = resize(d.x, n, Width), resize(d.normed, n, Width)
	d.qkv, d.attended = resize(d.qkv, n, 3*Width), resize(d.attended, n, Width)
	d.hidden, d.squared = resize(d.hidden, n, Hidden), resize(d.squared, n, Hidden)
	d.logits = resize(d.logits, n, Vocab)
	d.scale = resizeSlice(d.scale, n)
}
