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
	room   int64 // bytes that may still be made
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

// set says what a path is from now on, and counts what was made.
func (t *tree) set(path string, s state, made bool) error {
	if made {
		if t.room -= int64(len(s.content)); t.room < 0 {
			return &RejectedError{File: path, Reason: fmt.Sprintf("the patch makes files of more than the %d bytes that are allowed; send it in parts", t.limit)}
		}
	}
	t.now[path] = s
	return nil
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
	if was.there {
		if section.Already = bytes.Equal(was.content, made.content); section.Already {
			return nil
		}
		return &RejectedError{File: f.New, Reason: "it is to be created, and is there already with other content; change it, or delete it first"}
	}
	section.Notes = made.notes
	return t.set(f.New, state{content: made.content, there: true, mode: permissions(f.NewMode)}, true)
}

func (t *tree) remove(f *File, section *Section) error {
	was, err := t.get(f.Old)
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
	return t.set(f.Old, state{}, false)
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
	from, err := t.get(f.Old)
	if err != nil {
		return err
	}
	to, err := t.get(f.New)
	if err != nil {
		return err
	}
	switch {
	case to.there && f.New != f.Old:
		if section.Already = t.moved(f, from, to); section.Already {
			return nil
		}
		return &RejectedError{File: f.New, Reason: "it is to be made of " + f.Old + ", and is there already"}
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
		if err := t.set(f.Old, state{}, false); err != nil {
			return err
		}
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

// applied takes a patch back, last section first, from files that it does not
// fit: if that can be done, they are what it makes.
func (p *Patch) applied(failed *tree) (*Result, bool) {
	t := newTree(func(path string) ([]byte, bool, error) {
		if s, ok := failed.first[path]; ok {
			return s.content, s.there, nil
		}
		return failed.read(path)
	}, int(failed.limit))
	result := &Result{Already: true, Sections: make([]Section, len(p.Files))}
	for i := len(p.Files) - 1; i >= 0; i-- {
		f := &p.Files[i]
		section := Section{Path: f.path(), Kind: f.Kind, Already: true}
		if f.Kind == Renamed || f.Kind == Copied {
			section.From = f.Old
		}
		if !t.takeBack(f) {
			return nil, false
		}
		section.Added, section.Removed = f.counts()
		result.Sections[i] = section
	}
	return result, true
}

// takeBack undoes a section.
func (t *tree) takeBack(f *File) bool {
	if f.binary != nil || f.blind {
		return false
	}
	path := f.path()
	was, err := t.get(path)
	if err != nil || was.there == (f.Kind == Deleted) {
		return false
	}
	undone, err := f.run(was.content, true, &t.budget)
	if err != nil {
		return false
	}
	before := state{content: undone.content, there: true}
	switch f.Kind {
	case Created:
		return len(undone.content) == 0 && t.set(path, state{}, false) == nil
	case Renamed, Copied:
		old, err := t.get(f.Old)
		if err != nil || old.there != (f.Kind == Copied) || old.there && !bytes.Equal(old.content, before.content) {
			return false
		}
		return t.set(path, state{}, false) == nil && t.set(f.Old, before, true) == nil
	default:
		return t.set(path, before, true) == nil
	}
}
