// Package rest is the HTTP door: the routes of the operations table under /v1,
// and beside them the few fixed routes listed in fixedRoutes. It turns requests
// into inputs, outputs into answers and errors into problem documents.
//
// Every request to an operation or to /mcp is authenticated here before
// anything else is said about it, even whether the route exists; the Host and
// Origin headers are checked, so that no web page can reach a service on a
// user's machine by DNS rebinding. The package bounds the size of a body and the
// time that it may take to arrive, and the time that a client may take to accept
// an answer. It does not bound how many clients connect or how slowly they send
// headers: that is the server's that runs this handler, and transport security
// is that of what stands before it.
package rest
