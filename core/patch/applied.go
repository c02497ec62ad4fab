package patch

import "bytes"

// applied takes a patch back, last section first, from files that it does not
// fit: if that can be done, they are what it makes.
func (p *Patch) applied(failed *tree) (*Result, bool) {
	t := newTree(failed.read, int(failed.limit))
	for path := range failed.first {
		t.first[path], t.now[path] = failed.first[path], failed.first[path]
	}
	result := &Result{Already: true, Sections: make([]Section, len(p.Files))}
	copied := map[*File][]byte{} // what each copy was made of
	for i := len(p.Files) - 1; i >= 0; i-- {
		f := &p.Files[i]
		section := Section{Path: f.path(), Kind: f.Kind, Already: true}
		if f.Kind == Renamed || f.Kind == Copied {
			section.From = f.Old
		}
		before, ok := t.takeBack(f)
		if !ok {
			return nil, false
		}
		if f.Kind == Copied {
			copied[f] = before
		}
		section.Added, section.Removed = f.counts()
		result.Sections[i] = section
	}
	for f, before := range copied {
		if old, err := t.get(f.Old); err != nil || !old.there || !bytes.Equal(old.content, before) {
			return nil, false
		}
	}
	return result, true
}

// takeBack undoes a section, and gives what it was made of.
func (t *tree) takeBack(f *File) ([]byte, bool) {
	path := f.path()
	was, err := t.get(path)
	if err != nil || was.there == (f.Kind == Deleted) {
		return nil, false
	}
	before, err := f.backward(was.content, t.room, &t.budget)
	if err != nil {
		return nil, false
	}
	switch f.Kind {
	case Created, Copied:
		t.now[path] = state{}
		return before, f.Kind == Copied || len(before) == 0
	case Renamed:
		old, err := t.get(f.Old)
		if err != nil || old.there {
			return nil, false
		}
		t.now[path] = state{}
	}
	err = t.set(f.pathBefore(), state{content: before, there: true}, true)
	return before, err == nil
}
