package core

// Paging is the part of a list's input that pages it.
type Paging struct {
	Limit  int    `json:"limit,omitempty" doc:"How many items at most." min:"1" max:"200" default:"50"`
	Cursor string `json:"cursor,omitempty" doc:"The next_cursor of the page before; leave it out for the first page." maxlen:"512"`
}

// Page is one page of a list, in a stable order.
type Page[T any] struct {
	Items      []T    `json:"items" doc:"The items of this page."`
	NextCursor string `json:"next_cursor,omitempty" doc:"Where the next page starts; absent on the last."`
}

// The sizes of a page.
const (
	defaultPage = 50
	largestPage = 200
)

// sized gives the paging with its default filled in.
func (p Paging) sized() (Paging, error) {
	if p.Limit == 0 {
		p.Limit = defaultPage
	}
	if p.Limit < 1 || p.Limit > largestPage {
		return p, invalid("limit", "limit is %d: give 1 to %d", p.Limit, largestPage)
	}
	return p, nil
}
