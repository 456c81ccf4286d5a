// Package sql holds the database's side of stocklock as plain SQL files: the
// versioned migrations, which the shop applies when it starts, and the queries
// of the audit, which anyone can also paste into a MySQL client.
package sql

import "embed"

// Migrations holds migrations/NNNNN_name.sql, in goose's format.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// The audit's queries. Each takes the run's id as its parameter, as often as it
// has question marks.
var (
	//go:embed audit/totals.sql
	AuditTotals string
	//go:embed audit/duplicates.sql
	AuditDuplicates string
	//go:embed audit/requests.sql
	AuditRequests string
)
