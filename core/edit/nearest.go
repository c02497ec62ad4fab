package edit

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxNearest    = 3   // lines that a caller is shown
	maxCandidates = 32  // places that are looked at closely
	maxCompared   = 50  // lines of a text that are compared at each of them
	maxLineBytes  = 512 // bytes of a line that are compared
	maxShownBytes = 200 // bytes of a line that are shown
	minScore      = 0.4 // below it lines have nothing to do with each other
)

// candidate is a place in the content where the text may have been meant.
type candidate struct {
	at     int // where the line begins that is like the text's longest
	number int // of that line
	score  float64
}

// nearestLines finds the lines most like a text, and says where the two part. It
// takes one pass over the content, and a bounded look at a bounded number of places.
func nearestLines(content []byte, old string) (lines []Line, divergence string) {
	text := strings.Split(strings.Trim(old, "\r\n"), "\n")
	text = text[:min(len(text), maxCompared)]
	anchor := 0
	for i := range text {
		if len(strings.TrimSpace(text[i])) > len(strings.TrimSpace(text[anchor])) {
			anchor = i
		}
	}
	if strings.TrimSpace(text[anchor]) == "" {
		return nil, ""
	}
	gauge := new(gauge)
	found := likest(content, gauge, text[anchor])
	if len(text) > 1 {
		weigh(content, gauge, found, text, anchor)
	}
	for i, c := range found[:min(len(found), maxNearest)] {
		line, part := parting(content, c, text, anchor)
		lines = append(lines, line)
		if i == 0 && len(text) > 1 && part >= 0 {
			divergence = fmt.Sprintf("line %d of the text is not as line %d of the file", part+1, line.Number)
		}
	}
	return lines, divergence
}

// likest gives the places whose lines are most like one, the likest first.
func likest(content []byte, gauge *gauge, line string) []candidate {
	var best []candidate
	gauge.set([]byte(line))
	number := 0
	for at := 0; at < len(content); {
		number++
		end := lineEnd(content, at)
		score := gauge.score(content[at:end])
		if score >= minScore && (len(best) < maxCandidates || score > best[len(best)-1].score) {
			best = insert(best, candidate{at, number, score})
		}
		at = end + 1
	}
	return best
}

// insert puts a candidate behind those that are as good, since they come first.
func insert(best []candidate, c candidate) []candidate {
	i, _ := slices.BinarySearchFunc(best, c, func(b, c candidate) int {
		if b.score >= c.score {
			return -1
		}
		return 1
	})
	best = slices.Insert(best, i, c)
	return best[:min(len(best), maxCandidates)]
}

// weigh scores each place anew, by all lines of the text.
func weigh(content []byte, gauge *gauge, found []candidate, text []string, anchor int) {
	sums := make([]float64, len(found))
	for i, line := range text {
		gauge.set([]byte(line))
		for j, c := range found {
			if there, _, ok := lineFrom(content, c, i-anchor); ok {
				sums[j] += gauge.score(there)
			}
		}
	}
	for j := range found {
		found[j].score = sums[j] / float64(len(text))
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
}

// parting is the first line at a place that is not as the text's, and which of
// the text's that is; -1 where there is none to be seen.
func parting(content []byte, c candidate, text []string, anchor int) (Line, int) {
	for i, line := range text {
		there, number, ok := lineFrom(content, c, i-anchor)
		if ok && string(bytes.TrimSuffix(there, []byte("\r"))) != strings.TrimSuffix(line, "\r") {
			return Line{Number: number, Text: shown(there), Score: c.score}, i
		}
	}
	there, number, _ := lineFrom(content, c, 0)
	return Line{Number: number, Text: shown(there), Score: c.score}, -1
}

// lineFrom gives the line that is so many after a candidate's, or before it.
func lineFrom(content []byte, c candidate, distance int) (line []byte, number int, ok bool) {
	at := c.at
	for range distance {
		at = lineEnd(content, at) + 1
		if at >= len(content) {
			return nil, 0, false
		}
	}
	for range -distance {
		if at == 0 {
			return nil, 0, false
		}
		at = bytes.LastIndexByte(content[:at-1], '\n') + 1
	}
	return content[at:lineEnd(content, at)], c.number + distance, true
}

func lineEnd(content []byte, at int) int {
	if n := bytes.IndexByte(content[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(content)
}

func shown(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) <= maxShownBytes {
		return strings.ToValidUTF8(string(line), string(utf8.RuneError))
	}
	cut := maxShownBytes
	for cut > maxShownBytes-utf8.UTFMax && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return strings.ToValidUTF8(string(line[:cut]), string(utf8.RuneError)) + "…"
}

// gauge measures how like lines are to one line, by the pairs of bytes that both
// hold: Dice's coefficient. White space around a line does not count.
type gauge struct {
	held  [1 << 16]uint16 // how often the line holds each pair
	pairs []uint16        // those of the line
	taken []uint16
}

func (g *gauge) set(line []byte) {
	for _, p := range g.pairs {
		g.held[p] = 0
	}
	g.pairs = g.pairs[:0]
	eachPair(line, func(p uint16) {
		g.held[p]++
		g.pairs = append(g.pairs, p)
	})
}

func (g *gauge) score(line []byte) float64 {
	n := 0
	g.taken = g.taken[:0]
	eachPair(line, func(p uint16) {
		n++
		if g.held[p] > 0 {
			g.held[p]--
			g.taken = append(g.taken, p)
		}
	})
	for _, p := range g.taken {
		g.held[p]++
	}
	return 2 * float64(len(g.taken)) / float64(n+len(g.pairs))
}

// eachPair gives the pairs of a line, the ones of its ends with a zero included,
// so that a line of one byte has some and an empty one has one.
func eachPair(line []byte, do func(uint16)) {
	line = bytes.TrimSpace(line[:min(len(line), maxLineBytes)])
	before := byte(0)
	for _, c := range line {
		do(uint16(before)<<8 | uint16(c))
		before = c
	}
	do(uint16(before) << 8)
}
