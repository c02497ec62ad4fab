// Package check looks at a data folder and says what is wrong with it and what a start
// would mend, without changing it.
//
// It does not think for itself what a start would do: it asks the same code, package core
// for the environments (PlanMending), and works on a copy of the records, brought up to
// date as a start would bring them.
//
// What it does not find: another content of a file of a workspace, and another archive of
// the same length in the place of one, since nobody keeps checksums of them. Everything
// below the folder may have any name; what is reported has no control characters.
package check

import "envapi/internal/plain"

// Level is how bad a finding is.
type Level string

// The levels, the best first.
const (
	// Note is nothing to be done about.
	Note Level = "note"
	// Mends is what a start mends by itself.
	Mends Level = "mends"
	// Damaged is what no start mends: somebody has to do something.
	Damaged Level = "damaged"
)

// Finding is one thing that was found.
type Finding struct {
	Level Level  `json:"level"`
	What  string `json:"what"`           // what it is about: the id of an environment, or a path below the folder
	Says  string `json:"says"`           // what is the matter
	Then  string `json:"then"`           // what a start does, or what has to be done
	Logs  string `json:"logs,omitempty"` // the line of a start's log about it, where it has one
}

// mostFindings bounds the report. More are counted.
const mostFindings = 1000

// Report is what was found in a data folder.
type Report struct {
	Folder string `json:"folder"`
	// Schema is that of the records, and Knows the newest that this program knows.
	Schema int64 `json:"schema"`
	Knows  int64 `json:"schema_known"`
	// What was looked at: records of environments, archives that were read to their ends,
	// and output logs.
	Environments int `json:"environments"`
	ArchivesRead int `json:"archives_read"`
	Logs         int `json:"logs"`
	// Findings are at most mostFindings; Notes, Mends and Damaged count all.
	Findings []Finding `json:"findings"`
	Notes    int       `json:"notes"`
	Mends    int       `json:"mends"`
	Damaged  int       `json:"damaged"`
}

// Worst gives the level of the worst finding; "" where there is none.
func (r *Report) Worst() Level {
	switch {
	case r.Damaged > 0:
		return Damaged
	case r.Mends > 0:
		return Mends
	case r.Notes > 0:
		return Note
	}
	return ""
}

func (r *Report) add(f Finding) {
	switch f.Level {
	case Damaged:
		r.Damaged++
	case Mends:
		r.Mends++
	default:
		r.Notes++
	}
	if len(r.Findings) < mostFindings {
		f.What, f.Says, f.Then = plain.Text(f.What), plain.Text(f.Says), plain.Text(f.Then)
		r.Findings = append(r.Findings, f)
	}
}

func (r *Report) note(what, says, then string) {
	r.add(Finding{Level: Note, What: what, Says: says, Then: then})
}

func (r *Report) mends(what, says, then string) {
	r.add(Finding{Level: Mends, What: what, Says: says, Then: then})
}

func (r *Report) damaged(what, says, then string) {
	r.add(Finding{Level: Damaged, What: what, Says: says, Then: then})
}
