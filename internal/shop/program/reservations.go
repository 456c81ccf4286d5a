package program

import (
	"time"

	"stocklock/internal/shop"
	"stocklock/internal/stock"
)

// reservationSettings are the settings of reservations. A copy without reservations has none.
type reservationSettings struct {
	Reservations     bool          `env:"SHOP_RESERVATIONS" help:"Offer reservations: units are held while a customer pays. They need --subject-header, --limit, --staff-addr, and all shops of the database with the same setting."`
	ReservationMax   time.Duration `env:"SHOP_RESERVATION_MAX" default:"15m" min:"1s" max:"24h" help:"How long units may be held before the payment begins, with the one extension."`
	OpenReservations int           `env:"SHOP_OPEN_RESERVATIONS" default:"5" min:"0" max:"100" help:"How many open reservations a customer may have. 0 makes no new ones: what is to be set until none is live, before they are switched off."`
	PaymentWindow    time.Duration `env:"SHOP_PAYMENT_WINDOW" default:"30m" min:"1s" max:"168h" help:"How long a payment may take once it has begun: longer than the provider's session."`
	PaymentGrace     time.Duration `env:"SHOP_PAYMENT_GRACE" default:"5m" min:"0s" max:"168h" help:"How long after the payment window the units are still held, for news of the payment that are late."`
	LatePayment      string        `env:"SHOP_LATE_PAYMENT" enum:"return,take-if-free" default:"return" help:"What becomes of a payment for a reservation that has ended: return, or take-if-free, which makes a new one if the units are free."`
	ReservationsKept time.Duration `env:"SHOP_RESERVATIONS_KEPT" default:"0s" min:"0s" max:"87600h" help:"How long the customer, the lines and the history of ended reservations are kept; 0 keeps them. References of payments are always kept."`
}

// reservations are the terms of reservations, or nil for a shop that offers none.
func (r *reservationSettings) reservations() *shop.Reservations {
	if !r.Reservations {
		return nil
	}
	return &shop.Reservations{Kept: r.ReservationsKept, Terms: stock.Terms{
		Open: r.OpenReservations, Longest: r.ReservationMax, Window: r.PaymentWindow, Grace: r.PaymentGrace, TakeLate: r.LatePayment == "take-if-free",
	}}
}
