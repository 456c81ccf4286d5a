package verdict

// Answer is how a request was answered, as package load names its outcomes. The catalogue has its words, under outcome.
type Answer struct {
	Name   string
	Colour string // a variable of pages/base.css, for a light and for a dark page
}

// Answers are all of them, in the order in which charts stack them.
var Answers = []Answer{
	{"sold", "sold"},
	{"sold_out", "soldout"},
	{"busy", "busy"},
	{"fenced", "fenced"},
	{"lost", "lost"},
	{"conflict", "conflict"},
	{"limited", "lock"},
	{"refused", "soft"},
	{"unknown", "unknown"},
	{"error", "error"},
	{"done", "inside"},
	{"to_return", "busy"},
	{"too_late", "soldout"},
	{"in_use", "conflict"},
}
