package patch

import (
	"bytes"
	"fmt"
)

// Read gives a file's content, and whether there is one.
type Read func(path string) (content []byte, there bool, err error)

// Result is what a patch makes of files.
type Result struct {
	Sections []Section // one for each of the patch's files
	Writes   []Write   // what is to be done, one for each path, in the order of the patch
	Already  bool      // whether every file is as the patch makes it, so that nothing is to be done
}

// Section is what became of a file of a patch.
type Section struct {
	Path string // after
	From string // before, of a renamed or copied one
	Kind
	Added, Removed int      // lines
	Notes          []string // what was not as the patch says
	Already        bool     // whether it was as the patch makes it
}

// Write is what a path is to be.
type Write struct {
	Path     string
	Gone     bool
	Content  []byte
	Mode     *uint32 // permissions that the patch gives; nil where it gives none
	ModeFrom string  // of a renamed or copied file, whose permissions are kept: its path before
}

// state is a file while a patch is applied.
type state struct {
	content  []byte
	there    bool
	mode     *uint32
	modeFrom string
}

// tree is the files of a patch, as they are after the sections so far.
type tree struct {
	read   Read
	first  map[string]state
	now    map[string]state
	paths  []string
	leaves map[string]bool // what a section of git's moves away or deletes, in whatever order
	taken  map[string]bool // what a section has put something at
	room   int64           // bytes that may still be made
	limit  int64
	budget int64 // bytes that may still be looked through
}

// Apply makes of files what a patch says, in memory: all of it, or none. Sections
// come in order, each on what the ones before left. The contents that are made
// have at most limit bytes together. An error of read comes back as it is; all
// others are *RejectedError.
//
// What was applied before is found out by taking the patch back: a file that it
// can be taken out of, and not put into, is as the patch makes it. A file whose
// mode alone is changed counts as changed, since modes are not read.
func (p *Patch) Apply(read Read, limit int) (*Result, error) {
	t := newTree(read, limit)
	for i := range p.Files {
		if f := &p.Files[i]; f.whole && (f.Kind == Renamed || f.Kind == Deleted) {
			t.leaves[f.Old] = true
		}
	}
	result := &Result{Already: true}
	for i := range p.Files {
		section, err := t.apply(&p.Files[i])
		if err != nil {
			if done, taken := p.applied(t); taken {
				return done, nil
			}
			return nil, err
		}
		result.Already = result.Already && section.Already
		result.Sections = append(result.Sections, section)
	}
	result.Writes = t.writes()
	return result, nil
}

func newTree(read Read, limit int) *tree {
	return &tree{
		read: read, first: map[string]state{}, now: map[string]state{},
		leaves: map[string]bool{}, taken: map[string]bool{},
		room: int64(limit), limit: int64(limit), budget: maxSearched,
	}
}

func (t *tree) get(path string) (state, error) {
	if s, ok := t.now[path]; ok {
		return s, nil
	}
	content, there, err := t.read(path)
	if err != nil {
		return state{}, err
	}
	s := state{content: content, there: there}
	t.first[path], t.now[path] = s, s
	t.paths = append(t.paths, path)
	return s, nil
}

// source is what a section takes a file from. In git's diffs that is the file
// before the whole patch, whatever other sections make of it.
func (t *tree) source(f *File) (state, error) {
	now, err := t.get(f.Old)
	if f.whole {
		return t.first[f.Old], err
	}
	return now, err
}

// leave takes a file away, unless another section has put something in its place.
func (t *tree) leave(f *File) {
	if !f.whole || !t.taken[f.Old] {
		t.now[f.Old] = state{}
	}
}

// set says what a path is from now on, and counts what was made.
func (t *tree) set(path string, s state, made bool) error {
	if made {
		if t.room -= int64(len(s.content)); t.room < 0 {
			return &RejectedError{File: path, Reason: fmt.Sprintf("the patch makes files of more than the %d bytes that are allowed; send it in parts", t.limit)}
		}
	}
	t.now[path] = s
	t.taken[path] = true
	return nil
}

// isFree says whether a section may put a file where there may be one: it does
// not count if it goes away by the same patch.
func (t *tree) isFree(f *File, was state) bool {
	return !was.there || f.whole && t.leaves[f.New] && !t.taken[f.New]
}

// apply applies a section.
func (t *tree) apply(f *File) (Section, error) {
	section := Section{Path: f.path(), Kind: f.Kind}
	section.Added, section.Removed = f.counts()
	var err error
	switch f.Kind {
	case Created:
		err = t.create(f, &section)
	case Deleted:
		err = t.remove(f, &section)
	case Renamed, Copied:
		section.From = f.Old
		err = t.move(f, &section)
	default:
		err = t.modify(f, &section)
	}
	return section, err
}

func (t *tree) create(f *File, section *Section) error {
	was, err := t.get(f.New)
	if err != nil {
		return err
	}
	made, err := f.forward(nil, t.room, &t.budget)
	if err != nil {
		return err
	}
	if !t.isFree(f, was) {
		if section.Already = bytes.Equal(was.content, made.content); section.Already {
			return nil
		}
		return &RejectedError{File: f.New, Reason: "it is to be created, and is there already with other content; change it, or delete it first"}
	}
	section.Notes = made.notes
	return t.set(f.New, state{content: made.content, there: true, mode: permissions(f.NewMode)}, true)
}

func (t *tree) remove(f *File, section *Section) error {
	was, err := t.source(f)
	if err != nil {
		return err
	}
	if !was.there {
		section.Already = true
		return nil
	}
	if !f.blind {
		left, err := f.forward(was.content, t.room, &t.budget)
		if err != nil {
			return err
		}
		if len(left.content) > 0 {
			return &RejectedError{File: f.Old, Reason: "it is to be deleted, and holds more than the patch takes out of it"}
		}
		section.Notes = left.notes
	}
	t.leave(f)
	return nil
}

func (t *tree) modify(f *File, section *Section) error {
	was, err := t.get(f.New)
	if err != nil {
		return err
	}
	if !was.there && !f.blank {
		return &RejectedError{File: f.New, Reason: "there is no such file"}
	}
	if f.blank && len(was.content) > 0 {
		made, err := f.forward(nil, t.room, &t.budget)
		if err != nil {
			return err
		}
		if section.Already = bytes.Equal(was.content, made.content); section.Already {
			return nil
		}
		return &RejectedError{File: f.New, Reason: "the patch shows it empty or not there, and it holds something"}
	}
	made, err := f.modify(was.content, t.room, &t.budget)
	if err != nil {
		return err
	}
	if !was.there {
		section.Kind = Created
	}
	section.Notes = made.notes
	section.Already = made.already && f.NewMode == nil
	now := state{content: made.content, there: true, mode: was.mode, modeFrom: was.modeFrom}
	if f.NewMode != nil {
		now.mode = permissions(f.NewMode)
	}
	return t.set(f.New, now, !made.already)
}

// move renames or copies.
func (t *tree) move(f *File, section *Section) error {
	from, err := t.source(f)
	if err != nil {
		return err
	}
	to, err := t.get(f.New)
	if err != nil {
		return err
	}
	switch {
	case f.New != f.Old && !t.isFree(f, to):
		if section.Already = t.moved(f, from, to); section.Already {
			return nil
		}
		return &RejectedError{File: f.New, Reason: fmt.Sprintf("it is to be made of %q, and is there already", f.Old)}
	case !from.there:
		return &RejectedError{File: f.Old, Reason: "there is no such file"}
	}
	made, err := f.modify(from.content, t.room, &t.budget)
	if err != nil {
		return err
	}
	section.Notes = made.notes
	now := state{content: made.content, there: true, mode: from.mode, modeFrom: from.modeFrom}
	if f.NewMode != nil {
		now.mode = permissions(f.NewMode)
	}
	if now.modeFrom == "" {
		now.modeFrom = f.Old
	}
	if f.Kind == Renamed {
		t.leave(f)
	}
	return t.set(f.New, now, len(f.hunks) > 0 || f.binary != nil)
}

// moved says whether what is at a file's new path is what the patch makes.
func (t *tree) moved(f *File, from, to state) bool {
	if f.Kind == Copied {
		if !from.there {
			return false
		}
		made, err := f.modify(from.content, t.room, &t.budget)
		return err == nil && bytes.Equal(made.content, to.content)
	}
	if from.there {
		return false
	}
	if f.binary != nil {
		return names(f.binary.newID, to.content)
	}
	_, err := f.run(to.content, true, &t.budget)
	return err == nil
}

// permissions are the bits of a mode that a patch gives: git knows only whether
// a file can be executed.
func permissions(mode *uint32) *uint32 {
	if mode == nil {
		return nil
	}
	bits := uint32(0o644)
	if *mode&0o100 != 0 {
		bits = 0o755
	}
	return &bits
}

// writes is what differs between the files at first and now.
func (t *tree) writes() []Write {
	var writes []Write
	for _, path := range t.paths {
		was, now := t.first[path], t.now[path]
		switch {
		case was.there && !now.there:
			writes = append(writes, Write{Path: path, Gone: true})
		case now.there && (!was.there || now.mode != nil || now.modeFrom != "" || !bytes.Equal(was.content, now.content)):
			writes = append(writes, Write{Path: path, Content: now.content, Mode: now.mode, ModeFrom: now.modeFrom})
		}
	}
	return writes
}
