package find

// Searches and Lists are the turns of those under way.
var Searches, Lists = searches, lists
