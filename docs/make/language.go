package main

import (
	"strings"

	"stocklock/internal/lab/live"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// language is what the generated parts of a page say.
type language struct {
	file  string            // how the name of a page's file ends
	words map[string]string // of the live page, by their keys; nil for English, which the code speaks itself

	other                                string // the line that leads to the other language, with %s for that page
	all                                  string // what leads to the page of what is expected, with %s for it
	wrong, happens, meet, see            string // headings
	strategies, scenarios, expected      string // titles of the lists
	code                                 string
	has, lacks, notApplicable, nothing   string
	attacks, implemented, commands, held string
	columns, more, sameOutput            string
	colon, stop                          string
	strategy, does, shownBy, scenario    string
	listStrategies, listScenarios        string
	attacked, matrix                     string

	mine        string // the title of the page of questions
	mineLead    string
	mineLook    string // a heading of the table: what the code does
	breaks      string // ... the cell that breaks it
	mends       string // ... the strategy that mends it
	breaksUnder string // a line: the strategy, its page, the scenario and its page
	mendedBy    string // ... and the twin, its page
	noneOfThese string
	mineEnd     string // below the last question
}

var english = language{
	file: ".md", other: "[简体中文](%s)", all: "[What is expected](%s)",
	wrong: "What goes wrong", happens: "What happens", meet: "How people meet it", see: "See it",
	strategies: "The strategies", scenarios: "The scenarios", expected: "What is expected",
	code: "code", has: "has", lacks: "lacks", notApplicable: "does not apply", nothing: "nothing",
	attacks: "It attacks the property **%s**: %s.", implemented: "The code is in %s",
	commands: "; it commands servers, so it needs ones that `loadtest` started itself",
	held:     "`%[1]s` holds under it: `loadtest explain %[1]s:%[2]s`.",
	columns:  "The [columns and events](../schedules.md) of a schedule.",
	more:     "More schedules, found by `loadtest explore`:",
	colon:    ": ", stop: ".",
	strategy: "strategy", does: "what it does", shownBy: "shown by", scenario: "scenario", attacked: "attacks",
	listStrategies: "From the naive to the strict, one page each.",
	listScenarios:  "Each attacks one property of a strategy, and is placed at one point of a sale.",
	matrix: "Each cell has the expected verdict, and how the strategy stands to the property that decides.\n" +
		"`loadtest list properties` explains the properties. Runs are held to this table in both directions.",
	mine: "Is it mine?",
	mineLead: "Five questions lead from your code to the cell that breaks it. The cell runs on real servers in seconds, and says step by\n" +
		"step what goes wrong. Next to it is a twin that holds in the same cell, and differs in as little as possible. The page of\n" +
		"`make lab` asks the same questions.",
	mineLook: "your code", breaks: "the cell that breaks it", mends: "the twin that holds",
	breaksUnder: "[`%[1]s`](strategies/%[1]s.md) breaks under [`%[2]s`](scenarios/%[2]s.md)",
	mendedBy:    "[`%[1]s`](strategies/%[1]s.md) holds there",
	noneOfThese: "None of these: [the next question](#%s).",
	mineEnd: "None of all these: [choose a way to sell](choosing.md), and hold your own code against the lab.\n" +
		"[Adding a strategy](adding-a-strategy.md) takes one file; `loadtest judge` then attacks each property that you declare.",
}

// languages returns English and Simplified Chinese, the latter with the words of the live page.
func languages() ([]language, error) {
	words, err := live.Words("zh")
	if err != nil {
		return nil, err
	}
	return []language{english, {
		file: ".zh-CN.md", words: words, other: "[English](%s)", all: "[预期结果](%s)",
		wrong: "问题在哪里", happens: "发生了什么", meet: "实际中怎么遇到", see: "运行看看",
		strategies: "策略", scenarios: "场景", expected: "预期结果",
		code: "代码", has: "具备", lacks: "缺少", notApplicable: "不适用", nothing: "无",
		attacks: "它针对的性质是 **%s**：%s。", implemented: "它的实现在 %s",
		commands:   "；它要操作服务器，所以服务器必须由 `loadtest` 自己启动",
		held:       "`%[1]s` 能守住：`loadtest explain %[1]s:%[2]s`。",
		columns:    "调度的[列和事件](../schedules.zh-CN.md)。",
		more:       "更多调度，由 `loadtest explore` 找到：",
		sameOutput: "输出见[英文页](%s#see-it)。%s",
		colon:      "：", stop: "。",
		strategy: "策略", does: "做法", shownBy: "最能说明它的场景", scenario: "场景", attacked: "针对的性质",
		listStrategies: "从最随意到最严格，每种一页。",
		listScenarios:  "每个场景针对策略的一种性质，发生在一笔销售的一个确定位置。",
		matrix: "每个单元格是预期的结论，以及策略与起决定作用的性质的关系。\n" +
			"`loadtest list properties` 说明各个性质。运行结果与这张表双向核对。",
		mine: "是我的代码吗？",
		mineLead: "五个问题，从你的代码找到让它失败的那个单元格。它在真实的服务器上几秒钟就跑完，并一步一步说明哪里出错。\n" +
			"旁边是一个孪生策略：在同一个单元格里守得住，改动又尽可能少。`make lab` 的页面也问同样的问题。",
		mineLook: "你的代码", breaks: "让它失败的单元格", mends: "守得住的孪生策略",
		breaksUnder: "[`%[1]s`](strategies/%[1]s.zh-CN.md) 在 [`%[2]s`](scenarios/%[2]s.zh-CN.md) 下失败",
		mendedBy:    "[`%[1]s`](strategies/%[1]s.zh-CN.md) 在那里守得住",
		noneOfThese: "都不是：[下一个问题](#%s)。",
		mineEnd: "全都不是：[选一种卖法](choosing.zh-CN.md)，再用实验室检验自己的代码。[增加一种策略](adding-a-strategy.md)（英文）只要一个文件，\n" +
			"`loadtest judge` 会攻击你声明的每一种性质。",
	}}, nil
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

// decisive says which property decides, and how the strategy stands to it.
func (l language) decisive(d scenario.Decisive) string {
	if l.words == nil {
		return d.String()
	}
	return map[declared.Standing]string{declared.Has: l.has, declared.Lacks: l.lacks, declared.NotApplicable: l.notApplicable}[d.Standing] +
		" " + d.Property
}

// properties lists properties by name, and in Chinese by what each means, too.
func (l language) properties(p declared.Property) string {
	if p == 0 {
		return l.nothing
	}
	if l.words == nil {
		return p.String()
	}
	var all []string
	for _, each := range declared.AllProperties() {
		if p.Includes(each) {
			all = append(all, each.String()+"（"+l.words["property."+each.String()]+"）")
		}
	}
	return strings.Join(all, "、")
}
