package verdict

import "slices"

// Answer is how a request was answered, as package load names its outcomes.
type Answer struct {
	Name   string
	En, Zh string
	Colour string // a variable of pages/base.css, for a light and for a dark page
}

// Answers are all of them, in the order in which charts stack them.
var Answers = []Answer{
	{"sold", "sold", "下单成功", "sold"},
	{"sold_out", "sold out", "已售罄", "soldout"},
	{"busy", "busy", "繁忙", "busy"},
	{"fenced", "fenced off", "被隔离令牌拒绝", "fenced"},
	{"lost", "lock lost", "锁已丢失", "lost"},
	{"conflict", "conflict", "冲突", "conflict"},
	{"limited", "limited", "超出限购", "lock"},
	{"refused", "refused", "拒绝连接", "soft"},
	{"unknown", "unknown", "未知", "unknown"},
	{"error", "error", "错误", "error"},
	{"done", "done", "已完成", "inside"},
	{"to_return", "money to return", "应退款", "busy"},
	{"too_late", "too late", "太迟", "soldout"},
	{"in_use", "payment in use", "付款已被使用", "conflict"},
}

// AnswerIn is an answer in words of a language. One that is not known is said by its name.
func AnswerIn(language, name string) string {
	i := slices.IndexFunc(Answers, func(a Answer) bool { return a.Name == name })
	switch {
	case i < 0:
		return name
	case language == "zh":
		return Answers[i].Zh
	}
	return Answers[i].En
}
