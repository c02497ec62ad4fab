package find

// Searches and Lists are the turns of those under way, and Processors of what the
// searches of an account have of those.
var Searches, Lists, Processors = searches, lists, processors

// StandBack gives a goroutine a thread that searches.
var StandBack = standBack
