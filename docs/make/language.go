package main

import (
	"strings"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// language is what the generated parts of a page say. The catalogue has its words under page.
type language struct {
	*words.Language
	file string // how the name of a page's file ends
	tag  string // en or zh-CN
}

var english = language{words.English, ".md", "en"}

// languages returns English and Simplified Chinese.
func languages() []language { return []language{english, {words.Chinese, ".zh-CN.md", "zh-CN"}} }

func (l language) translated() bool { return l.Language != words.English }

// say makes words of a key below page.
func (l language) say(key string, facts ...any) string { return l.Say(words.Of("page."+key, facts...)) }

// sentence is a line as a sentence of its own.
func (l language) sentence(key, english string) string {
	said := l.Or(key, english)
	if !l.translated() {
		said = strings.ToUpper(said[:1]) + said[1:]
	}
	return l.say("sentence", "said", said)
}

func (l language) verdict(k verdict.Kind) string { return verdict.Of(k).Word(l.Language) }
