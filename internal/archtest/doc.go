// Package archtest holds the rules of the house as tests: which package may
// import what, with the reason. It protects the layout from the people who
// change it, and nothing at run time.
package archtest
