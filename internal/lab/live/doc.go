// Package live serves the page on which a class predicts, runs, watches and steps through cells.
//
// A [Server] runs one thing at a time, on real servers: cells by packages matrix and trial,
// schedules by package step. Everyone who can reach it may watch. A request needs the token to
// start a run.
//
// # The record
//
// The record of a cell is a list of entries, ordered by time: see [Entry]. The page, the replay and
// the files of [Options].Record show the same entries. They always have the points of sales, the
// notifications of Redis, the interventions, and the values polled from MySQL. A comparison does
// not keep single requests.
//
// # Requests
//
// routes.go lists the requests. All but GET need the header Authorization: Bearer TOKEN. If they have an Origin, it
// must be the Host. Every request needs a Host that is a loopback name or address, or one of [Options].Hosts.
//
// # Events
//
// Each event has an id. A page resumes with the id in the header Last-Event-ID, or in the parameter
// after. If the server no longer keeps that event, the first event is state, which has everything.
// The event heartbeat comes every 5 s, without an id.
//
// # Decisions
//
// The page runs one thing at a time. Cells share one testbed that stays between them. Comparisons
// have a testbed without proxies, and schedules have a stage. Two of these at once would spoil each
// other's leases and numbers. A schedule waits for the cell that runs, not for the queue.
//
// Phones have an address of their own. What is served is decided by the Host: under the address
// of the class, that is the vote alone. So 300 phones cost no stream of events while a cell is measured, and a
// token that gets there opens nothing.
//
// The page keeps no state of its own. The server has one state and one ordered feed of events. A
// page that resumes names the last event it had. If the server no longer keeps that event, it sends
// the whole state. A schedule is part of the page's address, and each request plays it from its
// beginning.
//
// A record is made twice. While a cell runs, entries appear as they are seen: the server reads
// traces every few milliseconds, and asks MySQL every 200 ms. After the cell, the record is made again from
// the evidence that the explanation reads. The orders then replace the values polled from MySQL.
//
// The coordinates of a drawing are milliseconds. Go draws each entry once. The browser moves a view box
// and a cursor, so a zoom or a step redraws nothing. A drawing has the numbers of its words: it is drawn once for
// all languages.
//
// The last runs of cells are kept in files, for a page that starts again. They have results and records, and nothing
// that a visitor typed.
//
// A saved page is this page: [Save] joins its scripts and puts the answers of a server into the file, by their
// addresses. So there is no second page, and a new view shows saved results as well. The answers are compressed in
// blocks, and a block is opened when a cell of it is shown. Small functions join the scripts. A bundler would take
// longer to compile than the rest of the lab.
package live
