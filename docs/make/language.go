package main

import (
	"strings"

	"stocklock/internal/lab/live"
	"stocklock/internal/lab/verdict"
)

// language is what the generated parts of a page say.
type language struct {
	file  string            // how the name of a page's file ends
	tag   string            // en or zh-CN
	words map[string]string // of the live page, by their keys; nil for English, which the code speaks itself

	code                                        string
	attacks, held, mendedBy, sameOutput         string
	colon, comma, stop, space                   string
	strategy, does, shownBy, scenario, attacked string

	mineLook    string // a heading of the table: what the code does
	breaks      string // ... the cell that breaks it
	mends       string // ... the strategy that mends it
	breaksUnder string // a line: the strategy and the scenario
	holdsThere  string // ... and the twin
	noneOfThese string
	mineEnd     string // below the last question
}

var english = language{
	file: ".md", tag: "en", code: "Code", attacks: "It attacks the property **%s**: %s. ",
	held: "; %s holds: `loadtest run %s --draw`", mendedBy: "What mends it",
	colon: ": ", comma: ", ", stop: ".", space: " ",
	strategy: "strategy", does: "what it does", shownBy: "shown by", scenario: "scenario", attacked: "attacks",
	mineLook: "your code", breaks: "the cell that breaks it", mends: "the twin that holds",
	breaksUnder: "%s breaks under %s: `%s`.", holdsThere: " %s holds there: `%s`.",
	noneOfThese: "None of these: [the next question](#%s).",
	mineEnd: "None of all these: [choose a strategy](choose.md), and hold your own code against the lab.\n" +
		"[Adding a strategy](../CONTRIBUTING.md#add-a-strategy) takes one file. `loadtest explore STRATEGY --judge` then attacks each property that you declare.",
}

// languages returns English and Simplified Chinese, the latter with the words of the live page.
func languages() []language {
	return []language{english, {
		file: ".zh-CN.md", tag: "zh-CN", words: live.Words("zh"), code: "代码", attacks: "它针对的性质是 **%s**：%s。",
		held: "；%s 能守住：`loadtest run %s --draw`", mendedBy: "怎么修好", sameOutput: "输出见[英文页](%s)。%s",
		colon: "：", comma: "、", stop: "。",
		strategy: "策略", does: "做法", shownBy: "最能说明它的场景", scenario: "场景", attacked: "针对的性质",
		mineLook: "你的代码", breaks: "让它失败的单元格", mends: "守得住的孪生策略",
		breaksUnder: "%s 在 %s 下失败：`%s`。", holdsThere: "%s 在那里守得住：`%s`。",
		noneOfThese: "都不是：[下一个问题](#%s)。",
		mineEnd: "全都不是：[选一种策略](choose.zh-CN.md)，再用实验室检验自己的代码。[增加一种策略](../CONTRIBUTING.md#add-a-strategy)（英文）只要一个文件，\n" +
			"`loadtest explore 策略 --judge` 会攻击你声明的每一种性质。",
	}}
}

// say returns the words under a key, or else what the code says in English.
func (l language) say(key, english string) string {
	if word, ok := l.words[key]; ok {
		return word
	}
	return english
}

// sentence is a line as a sentence of its own.
func (l language) sentence(key, english string) string {
	said := l.say(key, english)
	if l.words != nil {
		return said + l.stop
	}
	return strings.ToUpper(said[:1]) + said[1:] + l.stop
}

func (l language) verdict(k verdict.Kind) string { return l.say("verdict."+string(k), string(k)) }
