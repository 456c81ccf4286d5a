// Package sql embeds the SQL files of stocklock: the versioned migrations, which the shop applies
// when it starts, and the queries of the audit, which also run in a MySQL client.
package sql

import "embed"

// Migrations contains migrations/NNNNN_name.sql in the format of goose.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Queries of the audit. Every parameter of a query is the run's id.
var (
	//go:embed audit/totals.sql
	AuditTotals string
	//go:embed audit/duplicates.sql
	AuditDuplicates string
	//go:embed audit/requests.sql
	AuditRequests string
)
