package settings

import (
	"encoding/json"
	"time"
)

// maxPeople is how many accounts are remembered, those that were asked about
// last; of the others the store has what is known.
const maxPeople = 10_000

// person is what is known of an account, and how asking about it went. The
// fields belong to the Client's lock.
type person struct {
	recalled bool    // the store was asked
	wishes   *wishes // nil where nothing is known
	tag      string  // the ETag of that
	kept     string  // what the store has

	checked  time.Time // when settings-api last said so; zero where that was before the start
	failures int       // since then
	wait     time.Time // until when it is not asked about again
	unfit    bool      // its last answer could not be used, which was logged

	flight chan struct{} // closed when the question under way is answered; nil where none is
}

// record is a person as the store keeps it.
type record struct {
	wishes
	Tag string `json:"etag,omitempty"`
}

func (p *person) basis() basis {
	some := p.wishes != nil && (p.wishes.idle != idle{} || len(p.wishes.Profiles) > 0)
	return basis{tag: p.tag, some: some}
}

// text gives what the store is to keep of a person.
func (p *person) text() (string, error) {
	text, err := json.Marshal(record{*p.wishes, p.tag})
	return string(text), err
}

// recall takes what the store has kept. What cannot be read is nothing.
func (p *person) recall(text string) {
	p.recalled = true
	w, err := readAnswer([]byte(text))
	if err != nil {
		return
	}
	var r record
	_ = json.Unmarshal([]byte(text), &r) // it could be read already
	p.wishes, p.tag, p.kept = &w, r.Tag, text
}

// people remembers accounts: two generations, of which the older one is
// forgotten when the younger one is full. The zero value is empty.
type people struct{ young, old map[string]*person }

// get gives the person of an account, a new one where it is not remembered.
func (m *people) get(account string) *person {
	if p := m.young[account]; p != nil {
		return p
	}
	p := m.old[account]
	if p == nil {
		p = &person{}
	}
	if m.young == nil || len(m.young) >= maxPeople/2 {
		m.young, m.old = map[string]*person{}, m.young
	}
	m.young[account] = p
	return p
}
