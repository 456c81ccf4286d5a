package main

import (
	"slices"
	"strings"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/live"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
)

// language is what the generated parts of a page say.
type language struct {
	file  string            // how the name of a page's file ends
	words map[string]string // of the live page, by their keys; nil for English, which the code speaks itself

	other                                string // the line that leads to the other language, with %s for that page
	wrong, happens, meet, see, expected  string // headings
	strategies, scenarios                string // titles of the lists
	shortest, found                      string
	guard, decrement, source, code       string
	has, lacks, notApplicable, follows   string
	under, is, because, nothing, attacks string
	schedule, commands, stop             string
	strategy, does, shownBy, scenario    string
	listStrategies, listScenarios        string
	attacked                             string
}

var english = language{
	file: ".md", other: "[简体中文](%s)",
	wrong: "What goes wrong", happens: "What happens", meet: "How people meet it", see: "See it", expected: "What is expected",
	strategies: "The strategies", scenarios: "The scenarios",
	shortest: "Its shortest bad schedules", found: "Found by `loadtest explore`; [what the columns and events mean](../schedules.md).",
	guard: "guard", decrement: "decrement", source: "source", code: "code", has: "has", lacks: "lacks", notApplicable: "does not apply",
	follows: "What is expected of it follows from that:", under: "under", is: "it is", because: "because", nothing: "nothing",
	attacks: "It attacks the property **%s**: %s.", schedule: "Its schedule is in %s",
	commands: "; it commands servers, so it needs ones that `loadtest` started itself", stop: ".",
	strategy: "strategy", does: "what it does", shownBy: "shown by", scenario: "scenario", attacked: "attacks",
	listStrategies: "From the naive to the strict, one page each.",
	listScenarios:  "Each attacks one property of a strategy, and is placed at one point of a sale.",
}

// languages returns English and Simplified Chinese, the latter with the words of the live page.
func languages() ([]language, error) {
	words, err := live.Words("zh")
	if err != nil {
		return nil, err
	}
	return []language{english, {
		file: ".zh-CN.md", words: words, other: "[English](%s)",
		wrong: "问题在哪里", happens: "发生了什么", meet: "实际中怎么遇到", see: "运行看看", expected: "预期结果",
		strategies: "策略", scenarios: "场景",
		shortest: "最短的失败调度", found: "由 `loadtest explore` 找到；列和事件的含义见[调度](../schedules.md)（英文）。",
		guard: "保护", decrement: "扣减", source: "出处", code: "代码", has: "具备", lacks: "缺少", notApplicable: "不适用",
		follows: "由此可以推出每个场景下的预期：", under: "场景", is: "预期", because: "原因", nothing: "无",
		attacks: "它针对的性质是 **%s**：%s。", schedule: "它的实现在 %s",
		commands: "；它要操作服务器，所以服务器必须由 `loadtest` 自己启动", stop: "。",
		strategy: "策略", does: "做法", shownBy: "最能说明它的场景", scenario: "场景", attacked: "针对的性质",
		listStrategies: "从最随意到最严格，每种一页。",
		listScenarios:  "每个场景针对策略的一种性质，发生在一笔销售的一个确定位置。",
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
	return map[strategy.Standing]string{strategy.Has: l.has, strategy.Lacks: l.lacks, strategy.NotApplicable: l.notApplicable}[d.Standing] +
		" " + d.Property
}

// properties lists properties by name, and in Chinese by what each means, too.
func (l language) properties(p strategy.Property) string {
	if p == 0 {
		return l.nothing
	}
	if l.words == nil {
		return p.String()
	}
	var all []string
	for _, each := range strategy.AllProperties() {
		if p.Includes(each) {
			all = append(all, each.String()+"（"+l.words["property."+each.String()]+"）")
		}
	}
	return strings.Join(all, "、")
}

// explained says beside what a command has printed in English why the first cell that has an
// explanation ended so.
func (l language) explained(cells []trial.Result) string {
	i := slices.IndexFunc(cells, func(c trial.Result) bool { return c.Explanation != nil && c.Verdict != verdict.Held })
	if l.words == nil || i < 0 {
		return ""
	}
	why := explain.Chinese.Say(cells[i].Explanation.Why...)
	return "\n`" + cells[i].Name() + "` 的解释：" + why + "\n"
}
