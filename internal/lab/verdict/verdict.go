// Package verdict has the verdicts on a run, of a cell or of a schedule.
//
// A verdict is one entry of [All], the only list of them. The terminal, Markdown, HTML, the live
// page and the documents take its words, its colours and its count from there, in both languages. To
// add one, add its word and its entry here, and the case in [Facts.Verdict] that finds it. A new fact
// is counted in trial/verdict.go, and in schedule/record.go for schedules. Where a scenario predicts
// the verdict, its Demands name it. docs/glossary.md explains it.
//
// # Decisions
//
// There is one table of verdicts. An entry of internal/lab/verdict has the word, colours, legend
// and sentences in both languages. The terminal, the pages and the exit code read it, for cells and
// for schedules. A cell is judged once, by a pure function of its facts.
//
// A verdict compares customers' answers with orders in both directions. An order belongs to a
// purchase: all requests under one idempotency key, or one request. Facts that SQL and the answers
// prove come before unexpected answers, which cannot undo them. The first that applies counts:
// oversold, twice, half-sold, unpaid, unserved, lied, denied, unclaimed, unbalanced, crashed, then invalid for
// unexpected answers, then left and stuck.
//
//   - A request without an answer, with 503 unavailable or with 500 may have an order or none.
//   - Every other answer than 201 says that no order was made. An order of such a customer is
//     denied, also when the answer is busy, conflict, lock lost or fenced off. A repeat that is
//     busy denies nothing, because it speaks of itself alone. A repeat that is sold out after its
//     sale denies the order.
//   - Units count as left only if nobody else can have had them. A request that was sent before
//     the answer and has an order, or may have one, counts as having had its units all the time. A
//     strategy that keeps units besides the item's row may hold those of a refused request for
//     longer.
package verdict

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Kind is a verdict in one word, as saved results have it.
type Kind string

// The verdicts.
const (
	Held       Kind = "held"       // exactly the stock was sold
	Oversold   Kind = "oversold"   // more was sold
	Twice      Kind = "twice"      // a customer has two orders for one purchase
	HalfSold   Kind = "half-sold"  // orders of several items stand without all that was ordered
	Unpaid     Kind = "unpaid"     // orders stand that no payment has paid
	Unserved   Kind = "unserved"   // payments were kept, and no order stands for them
	Lied       Kind = "lied"       // answers said sold, and no such order stands
	Denied     Kind = "denied"     // orders stand whose customers were answered otherwise
	Left       Kind = "left"       // customers were sent away, and the database had units for them
	Unclaimed  Kind = "unclaimed"  // units are in no order and not for sale, after all that can end has ended
	Unbalanced Kind = "unbalanced" // orders and what is left do not add up to the stock, and it is none of those above
	Crashed    Kind = "crashed"    // sales ended with an error or without an answer, and nothing had happened
	Stuck      Kind = "stuck"      // stock and demand were left, and nothing was sold any more
	Invalid    Kind = "invalid"    // the harness failed, which says nothing about the strategy
	Skipped    Kind = "skipped"    // the scenario cannot be run here
	// Inapplicable: the scenario has nothing to attack in the strategy.
	Inapplicable Kind = "inapplicable"

	// Degraded is shown and never saved: the verdict is Held, and less was sold than was wanted.
	Degraded Kind = "degraded"
)

// OfSchedules are what a class can predict of a schedule.
var OfSchedules = []Kind{Held, Oversold, Lied, Left, Stuck, HalfSold}

// Verdict is an entry: what is shown and said of a verdict, everywhere.
type Verdict struct {
	Kind        Kind
	Bad         bool // the strategy failed
	Predictable bool // a class can predict it
	// N is the number that is shown with the word, nil for a verdict that has none. Signed shows a
	// plus before it.
	N        func(Facts) int64
	Signed   bool
	Terminal text.Colors // nil for the colour of other text
	Style    string      // on a page, in declarations of CSS; empty for the grey of what says nothing
	En, Zh   Words
}

// Words are what one language says of a verdict. {n} in them stands for its number, and {sold},
// {stock}, {left}, {seconds}, {waiting} and {declared} for other facts of the run.
type Words struct {
	Word   string
	Short  string // in a table; empty for the word and the number
	Legend string // below a table, in a few words
	Means  string // a sentence of what it means
	Reason string // of a run: what the verdict rests on; empty where there is no more to say
}

// All are the verdicts in the order of legends.
var All = []Verdict{
	{
		Kind: Held, Predictable: true, Terminal: text.Colors{text.FgGreen}, Style: held,
		En: Words{Word: "held", Legend: "sold exactly the stock", Means: "Exactly the stock was sold."},
		Zh: Words{Word: "守住", Legend: "售出数量恰好等于库存", Means: "售出数量恰好等于库存。"},
	},
	{
		Kind: Degraded, Terminal: text.Colors{text.FgGreen}, Style: held,
		En: Words{Word: "degraded", Legend: "oversold nothing, and left demand", Means: "Nothing was oversold, and demand was left.",
			Reason: "sold {sold} of {stock} in {seconds} s, with demand left{declared}"},
		Zh: Words{Word: "降级", Legend: "没有超卖，但有需求未满足", Means: "没有超卖，但有需求未满足。",
			Reason: "{seconds} 秒内售出 {stock} 件中的 {sold} 件，仍有需求未满足{declared}"},
	},
	{
		Kind: Oversold, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Oversold }, Terminal: yellow, Style: broke,
		En: Words{Word: "oversold", Short: "+{n}", Legend: "oversold {n}", Means: "More than the stock was sold.",
			Reason: "{sold} units in orders for a stock of {stock}"},
		Zh: Words{Word: "超卖", Short: "+{n}", Legend: "超卖 {n} 件", Means: "售出数量超过了库存。",
			Reason: "库存 {stock} 件，订单共 {sold} 件"},
	},
	{
		Kind: Twice, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Twice }, Terminal: yellow, Style: broke,
		En: Words{Word: "twice", Short: "twice {n}", Legend: "{n} orders too many for one purchase", Means: "A customer has two orders for one purchase.",
			Reason: "{n} orders stand beside another one of the same purchase"},
		Zh: Words{Word: "重复下单", Short: "重复 {n}", Legend: "同一次购买多出 {n} 个订单", Means: "同一次购买产生了两个订单。",
			Reason: "有 {n} 个订单与同一次购买的另一个订单并存"},
	},
	{
		Kind: HalfSold, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.HalfSold }, Terminal: yellow, Style: broke,
		En: Words{Word: "half-sold", Legend: "{n} orders without all their items", Means: "Orders of several items stand without all that was ordered.",
			Reason: "{n} orders stand without all that was ordered"},
		Zh: Words{Word: "部分售出", Legend: "{n} 个订单缺少部分商品", Means: "有多件商品的订单有效，却缺少其中一部分。",
			Reason: "{n} 个有效订单缺少所订商品的一部分"},
	},
	{
		Kind: Unpaid, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Unpaid }, Terminal: yellow, Style: broke,
		En: Words{Word: "unpaid", Legend: "{n} orders without a payment", Means: "Orders of reservations stand, and no payment has paid them.",
			Reason: "{n} orders of reservations stand, and no payment of their customers has paid them"},
		Zh: Words{Word: "未付款", Legend: "{n} 个订单没有付款", Means: "预占的订单有效，却没有对应的付款。",
			Reason: "{n} 个预占的有效订单没有其顾客的付款"},
	},
	{
		Kind: Unserved, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Unserved }, Terminal: yellow, Style: broke,
		En: Words{Word: "unserved", Legend: "{n} payments without an order", Means: "Payments were kept, and no order stands for them.",
			Reason: "{n} payments were kept, and no order of their customers stands"},
		Zh: Words{Word: "付款无货", Legend: "{n} 笔付款没有订单", Means: "付款没有退还，却没有对应的有效订单。",
			Reason: "{n} 笔付款没有退还，其顾客却没有有效订单"},
	},
	{
		Kind: Lied, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Unordered }, Terminal: yellow, Style: broke,
		En: Words{Word: "lied", Legend: "{n} answers without an order", Means: "Requests were answered as sold, and no such order stands.",
			Reason: "{n} requests were answered as sold, and no such order stands"},
		Zh: Words{Word: "虚报", Legend: "{n} 个下单成功的答复没有订单", Means: "有请求得到下单成功的答复，却没有相应的有效订单。",
			Reason: "{n} 个请求得到下单成功的答复，却没有相应的有效订单"},
	},
	{
		Kind: Denied, Bad: true, N: func(f Facts) int64 { return f.Denied }, Terminal: yellow, Style: broke,
		En: Words{Word: "denied", Legend: "{n} orders of customers who were answered otherwise", Means: "Orders stand, and their customers were answered as busy or sold out.",
			Reason: "{n} purchases have an order, and their customers were answered as busy or sold out"},
		Zh: Words{Word: "否认", Legend: "{n} 个订单的顾客得到的是未成交的答复", Means: "订单有效，其顾客却得到繁忙或已售罄的答复。",
			Reason: "{n} 次购买有订单，其顾客却得到繁忙或已售罄的答复"},
	},
	{
		Kind: Left, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Left }, Terminal: yellow, Style: broke,
		En: Words{Word: "left", Legend: "customers sent away with {n} units left", Means: "Customers were sent away, and the database had units for them.",
			Reason: "customers were sent away, and the database had {n} of {stock} units that nobody else was buying"},
		Zh: Words{Word: "有剩余", Legend: "顾客被拒绝，却仍有 {n} 件库存", Means: "顾客被拒绝，而数据库中仍有可售库存。",
			Reason: "顾客被拒绝，而数据库中 {stock} 件还有 {n} 件，且没有其他人在购买"},
	},
	{
		Kind: Unclaimed, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Unclaimed }, Terminal: yellow, Style: broke,
		En: Words{Word: "unclaimed", Legend: "{n} units in no order and not for sale", Means: "Units are in no order, and nobody can buy them any more.",
			Reason: "{n} units are in no order, and nobody can buy them any more"},
		Zh: Words{Word: "无主库存", Legend: "{n} 件既不在订单中也无法再售出", Means: "有库存不属于任何订单，却再也无法售出。",
			Reason: "有 {n} 件不属于任何订单，却再也无法售出"},
	},
	{
		Kind: Unbalanced, Bad: true, N: func(f Facts) int64 { return f.LostUpdates }, Signed: true, Terminal: yellow, Style: broke,
		En: Words{Word: "unbalanced", Legend: "{n} units are in no order and not left (-), or both (+)", Means: "Orders and what is left do not add up to the stock.",
			Reason: "{sold} in orders and {left} left of a stock of {stock}"},
		Zh: Words{Word: "账不平", Legend: "{n} 件既不在订单中也不在库存中（-），或两者都在（+）", Means: "订单与剩余库存之和不等于初始库存。",
			Reason: "初始库存 {stock} 件，订单 {sold} 件，剩余 {left} 件"},
	},
	{
		Kind: Crashed, Bad: true, N: func(f Facts) int64 { return f.Crashed }, Terminal: yellow, Style: broke,
		En: Words{Word: "crashed", Legend: "{n} sales ended with an error", Means: "Sales ended with an error or without an answer, although nothing had happened.",
			Reason: "{n} sales ended with an error or without an answer, and nothing had happened"},
		Zh: Words{Word: "崩溃", Legend: "{n} 次售卖以错误告终", Means: "没有发生任何故障，售卖却以错误告终或没有答复。",
			Reason: "没有发生任何故障，却有 {n} 次售卖以错误告终或没有答复"},
	},
	{
		Kind: Stuck, Bad: true, Predictable: true, Terminal: yellow,
		Style: broke + " background-image: repeating-linear-gradient(45deg, transparent 0 6px, #0000000f 6px 12px);",
		En: Words{Word: "stuck", Legend: "nothing is sold any more", Means: "Stock and demand were left, and nothing was sold any more.",
			Reason: "{left} of {stock} left and wanted; {waiting}"},
		Zh: Words{Word: "卡死", Legend: "不再有任何成交", Means: "仍有库存和需求，却不再有任何成交。",
			Reason: "{stock} 件中剩余 {left} 件，仍有需求；{waiting}"},
	},
	{
		Kind: Invalid, Terminal: yellow,
		Style: "background-color: var(--loud); color: var(--loud-ink); font-weight: 700; outline: 3px solid var(--loud); outline-offset: 1px;",
		En:    Words{Word: "invalid", Legend: "the lab failed", Means: "The lab failed. This says nothing about the strategy."},
		Zh:    Words{Word: "无效", Legend: "实验室本身出错", Means: "实验室本身出错，不能说明策略的好坏。"},
	},
	{
		Kind: Skipped,
		En:   Words{Word: "skipped", Short: "–", Legend: "skipped", Means: "The cell cannot run here."},
		Zh:   Words{Word: "跳过", Short: "–", Legend: "跳过", Means: "该单元格在此处无法运行。"},
	},
	{
		Kind: Inapplicable, Predictable: true,
		En: Words{Word: "does not apply", Short: "·", Legend: "does not apply", Means: "The scenario finds nothing to attack in the strategy."},
		Zh: Words{Word: "不适用", Short: "·", Legend: "不适用", Means: "该场景在此策略中没有可攻击之处。"},
	},
}

// The colours that several verdicts have. The variables are in pages/base.css, for a light
// and for a dark page.
var yellow = text.Colors{text.FgYellow}

const (
	held  = "background-color: var(--held); color: var(--held-ink);"
	broke = "background-color: var(--broke); color: var(--broke-ink);"
)

// Of returns the entry of a verdict. One that this program does not know, of a newer program's
// result, is bad and speaks for itself.
func Of(k Kind) Verdict {
	for _, v := range All {
		if v.Kind == k {
			return v
		}
	}
	return Verdict{Kind: k, Bad: true, En: Words{Word: string(k)}, Zh: Words{Word: string(k)}}
}

// In returns the words in a language: "zh" for Simplified Chinese, and English for every other.
func (v Verdict) In(language string) Words {
	if language == "zh" {
		return v.Zh
	}
	return v.En
}

// Counted is the English word with the run's number, such as "oversold 3".
func (v Verdict) Counted(f Facts) string { return strings.TrimSpace(v.En.Word + " " + v.Number(f)) }

// Short is the same as a table has it, such as "+3".
func (v Verdict) Short(f Facts) string { return v.En.short(v.Number(f)) }

func (w Words) short(n string) string {
	if w.Short == "" {
		return strings.TrimSpace(w.Word + " " + n)
	}
	return strings.ReplaceAll(w.Short, "{n}", n)
}

// Beside is a number as it stands beside the word, such as "+3" beside "oversold".
func (v Verdict) Beside(n string) string { return strings.TrimPrefix(v.En.short(n), v.En.Word+" ") }

// Count is the run's number, 0 for a verdict that has none.
func (v Verdict) Count(f Facts) int64 {
	if v.N == nil {
		return 0
	}
	return v.N(f)
}

// Number is the run's number as it is shown with the word, empty where there is none.
func (v Verdict) Number(f Facts) string {
	switch {
	case v.N == nil:
		return ""
	case v.Signed:
		return fmt.Sprintf("%+d", v.Count(f))
	}
	return fmt.Sprint(v.Count(f))
}

// Legend is the entry's line below a table in English, such as "+N: oversold N".
func (v Verdict) Legend() string {
	n := ""
	if v.N != nil {
		n = "N"
	}
	return v.En.short(n) + ": " + strings.ReplaceAll(v.En.Legend, "{n}", n)
}

// Reason says in a language what the verdict on a run rests on. It is empty where there is no more
// to say than the word.
func (v Verdict) Reason(language string, f Facts) string {
	reason := v.In(language).Reason
	if v.Kind == Stuck && f.Waiting == nil {
		reason = waiting[language == "zh"].outlasted
	}
	declared := ""
	if f.Starves {
		declared = starves[language == "zh"]
	}
	return strings.NewReplacer("{declared}", declared, "{n}", v.Number(f), "{sold}", fmt.Sprint(f.Sold), "{left}", fmt.Sprint(f.Remaining), "{stock}", fmt.Sprint(f.Stock),
		"{seconds}", fmt.Sprintf("%.0f", f.Seconds), "{waiting}", f.Waiting.in(language)).Replace(reason)
}

// Phrases are the words of all verdicts in a language, by the keys that the live page has for them.
func Phrases(language string) map[string]string {
	phrases := map[string]string{}
	for _, v := range All {
		w, n := v.In(language), ""
		if v.N != nil {
			n = "{n}"
		}
		for key, words := range map[string]string{"verdict.": w.Word, "short.": w.short(n), "legend.": w.Legend, "means.": w.Means} {
			phrases[key+string(v.Kind)] = words
		}
	}
	for _, a := range Answers {
		phrases["outcome."+a.Name] = AnswerIn(language, a.Name)
	}
	return phrases
}

// Style is the style sheet of the chips that show verdicts, each with the classes v and its word, and of the colours of
// answers: in a chart (o-), in its key (k-), and in a bar (b-).
func Style() string {
	var b strings.Builder
	for _, v := range All {
		if v.Style != "" {
			fmt.Fprintf(&b, ".v.%s { %s }\n", v.Kind, v.Style)
		}
	}
	for _, a := range Answers {
		fmt.Fprintf(&b, ".o-%[1]s { stroke: var(--%[2]s); } .k-%[1]s { --k: var(--%[2]s); } .b-%[1]s { background: var(--%[2]s); }\n", a.Name, a.Colour)
	}
	return b.String()
}
