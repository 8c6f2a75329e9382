// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package split

// cased is the pattern of o200k and similar ones, where a word also ends before a capital that follows small letters:
//
//	[apart]+ | [^\r\n\p{L}\p{N}]?[capitals]*[small]+contraction? | [^\r\n\p{L}\p{N}]?[capitals]+[small]*contraction?
//	| \p{N}{1,digits} | ?[^\s\p{L}\p{N}]+[\r\n/]* | white space
//
// Letters without case and marks count as both capitals and small letters.
type cased struct {
	digits       int
	contractions bool
	slash        bool  // Slashes belong to the punctuation before them.
	apart        class // Runs of these characters are pieces of their own and not letters of words.
}

func (p cased) piece(text string) int {
	first, size := at(text, 0)
	if first&p.apart != 0 {
		return after(text, size, p.apart)
	}
	if first&(letter|mark) == 0 {
		if first&number != 0 {
			return digitsEnd(text, p.digits)
		}
		if text[0] == '\r' || text[0] == '\n' {
			return p.rest(text, first)
		}
		if end, ok := p.word(text, size); ok {
			return p.contraction(text, end)
		}
		return p.rest(text, first)
	}
	if first&mark != 0 {
		return p.fromMark(text, size)
	}
	end, _ := p.word(text, 0)
	return p.contraction(text, end)
}

func (p cased) rest(text string, first class) int {
	tail := "\r\n"
	if p.slash {
		tail = "\r\n/"
	}
	return symbolsOrSpace(text, first, letter|number, tail)
}

// fromMark is the end of a word that begins with a mark, which either precedes the word or is its first letter. It
// tries the two alternatives of the pattern with both readings, in the order of the pattern.
func (p cased) fromMark(text string, size int) int {
	if end, ok := p.endsSmall(text, size); ok {
		return p.contraction(text, end)
	}
	end, _ := p.endsSmall(text, 0) // The mark itself is small.
	return p.contraction(text, end)
}

// word is the end of `[capitals]*[small]+`, else of `[capitals]+[small]*`.
func (p cased) word(text string, start int) (end int, ok bool) {
	if end, ok := p.endsSmall(text, start); ok {
		return end, true
	}
	end = p.after(text, start, upper|uncased|mark)
	return end, end > start
}

// endsSmall is the end of `[capitals]*[small]+`. The capitals match as much as possible and backtrack as needed: if no
// small letter follows them, to their last character without case.
func (p cased) endsSmall(text string, start int) (end int, ok bool) {
	both := start // It is the end of the last character without case.
	for i := start; ; {
		c, size := at(text, i)
		switch {
		case c&p.apart != 0 || c&(letter|mark) == 0:
			return both, both > start
		case c&lower != 0:
			return p.after(text, i+size, lower|uncased|mark), true
		}
		i += size
		if c&(uncased|mark) != 0 {
			both = i
		}
	}
}

func (p cased) contraction(text string, end int) int {
	if !p.contractions {
		return end
	}
	return contractionEnd(text, end)
}

// after is the end of a run of letters of the set.
func (p cased) after(text string, i int, set class) int {
	if p.apart == 0 {
		return after(text, i, set)
	}
	for {
		c, size := at(text, i)
		if c&set == 0 || c&p.apart != 0 {
			return i
		}
		i += size
	}
}
