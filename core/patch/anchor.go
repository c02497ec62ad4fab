package patch

import (
	"bytes"
	"fmt"
)

// maxAnchors is how many lines like an anchor are told apart.
const maxAnchors = 1000

// anchored finds the place of a hunk that names the line it comes after: right
// behind that line where it has no lines of its own to find, else where those
// first stand from it on.
func (t *text) anchored(h *hunk, old []byte) (spot, string) {
	from := t.from
	var lines []int
	for i, anchor := range h.anchors {
		*t.budget -= int64(len(t.content) - from)
		if *t.budget < 0 {
			return spot{}, "too much had to be looked through for its @@ lines; make fewer hunks at a time"
		}
		lines = t.like(anchor, from)
		switch {
		case len(lines) == 0:
			return spot{}, fmt.Sprintf("no line like its @@ line %q is in the file behind what comes before it", clipped(anchor))
		case len(lines) > 1 && (i < len(h.anchors)-1 || len(old) == 0):
			return spot{}, fmt.Sprintf("several lines are like its @@ line %q, the first at lines %d and %d; give more lines around the change", clipped(anchor), t.lineAt(lines[0]), t.lineAt(lines[1]))
		}
		from = min(len(t.content), lineEnd(t.content, lines[0])+1)
	}
	if len(old) == 0 {
		return spot{at: from, end: from, noEnd: from == len(t.content) && t.open()}, ""
	}
	return t.behind(h, old, lines)
}

// behind finds the lines of a hunk from one of several lines on; from each the
// first place counts.
func (t *text) behind(h *hunk, old []byte, lines []int) (spot, string) {
	var found []spot
	for i, from := range lines {
		spots, reason := t.search(h, old, from)
		if reason != "" {
			return spot{}, reason
		}
		if len(spots) == 0 {
			break
		}
		if len(found) == 0 || found[len(found)-1].at != spots[0].at {
			found = append(found, spots[0])
		}
		// An anchor that has another one between itself and the place is not meant.
		if i+1 < len(lines) && spots[0].at >= lines[i+1] {
			found = found[:len(found)-1]
		}
		if len(found) == maxPlaces {
			break
		}
	}
	switch len(found) {
	case 0:
		return spot{}, t.explain(old, -1)
	case 1:
		return found[0], ""
	}
	return spot{}, fmt.Sprintf("its lines stand behind several lines like its @@ line, at lines %s; give more lines around the change", t.lines(found))
}

// like finds where the lines begin that are like an anchor: the same; or else the
// same but for white space around; or else those that begin with it; or else
// those that hold it.
func (t *text) like(anchor string, from int) []int {
	want := []byte(anchor)
	var levels [unlike + 1][]int
	for at := from; at < len(t.content); {
		end := lineEnd(t.content, at)
		level := likeness(bytes.TrimSuffix(t.content[at:end], []byte("\r")), want)
		if len(levels[level]) < maxAnchors {
			levels[level] = append(levels[level], at)
		}
		at = end + 1
	}
	for _, lines := range levels[:unlike] {
		if len(lines) > 0 {
			return lines
		}
	}
	return nil
}

// unlike is the likeness of lines that have nothing of an anchor.
const unlike = 4

// likeness says how like a line is to an anchor; 0 is the same.
func likeness(line, anchor []byte) int {
	solid := bytes.TrimSpace(line)
	switch {
	case bytes.Equal(line, anchor):
		return 0
	case bytes.Equal(solid, anchor):
		return 1
	case bytes.HasPrefix(solid, anchor):
		return 2
	case bytes.Contains(solid, anchor):
		return 3
	}
	return unlike
}
