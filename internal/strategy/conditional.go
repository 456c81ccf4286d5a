package strategy

var conditional = Strategy{
	Name:         "conditional",
	Doc:          "UPDATE ... SET stock = stock - ? WHERE stock >= ?: one statement, no lock needed, where the work fits in one statement",
	WithoutRedis: true,
	Mixable:      true,
	Baskets:      true,
	RefusesEarly: true,
	FindsRepeats: true,
	Build:        Retrying(sellConditionally),
}
