package prompt

// What tests see of the inside.
var (
	ParseCall   = parseCall
	ParseStat   = parseStat
	ParseTarget = parseTarget
)

// Files is how many files a look opens at most.
const Files = files

// Used is how much of a processor the thread has had.
var Used = used

// WhileEpollIsListed does something while another look lists a set.
func WhileEpollIsListed(do func()) {
	epolls.Lock()
	defer epolls.Unlock()
	do()
}
