// Package live serves the page on which a class predicts, runs, watches and steps through cells.
//
// A [Server] runs one thing at a time, on real servers: cells by packages matrix and trial,
// schedules by package schedule. Everyone who can reach it may watch. A request needs the token to
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
//	GET    /                          the page and its files
//	GET    /docs/, /internal/strategy/ pages, and the code of strategies
//	GET    /api/catalog               strategies, scenarios, limits
//	GET    /api/course?lang=zh        the lessons, with the commands that the page starts
//	GET    /api/tried/N               the result of a service that was tried
//	GET    /api/events                server-sent events, see below
//	GET    /api/runs/N                a run with its drawings and entries, and their words in every language
//	GET    /api/runs/N/record         its entries, a JSON line each
//	GET    /api/loads/N/FILE          a comparison under load: report.html or result.json
//	POST   /api/runs                  {"cells":[{"strategy":"none","scenario":"pause","seed":1}]}
//	DELETE /api/runs                  ends what runs and drops what waits
//	POST   /api/predictions           {"strategy":"none","scenario":"pause","word":"oversold"}
//	POST   /api/loads                 {"strategies":["none"],"shape":"200/5s","seed":1}
//	POST   /api/positions             {"strategy":"none","customers":2,"schedule":"A.select"}
//	POST   /api/explorations          {"strategy":"none","customers":2,"events":["wait"]}: every order of the requests
//	POST   /api/ballots               asks the phones
//	POST   /api/token                 whether the token is known
//	GET    /api/ballot                of the class's address alone: what the phones are asked
//	POST   /api/votes                 of the class's address alone: a vote
//
// All requests but GET need the header Authorization: Bearer TOKEN. If they have an Origin, it must
// be the Host. Every request needs a Host that is a loopback name or address, or one of
// [Options].Hosts.
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
// Phones have an address of their own. What is served is decided by the Host: under the class's
// there is the vote alone. So 300 phones cost no stream of events while a cell is measured, and a
// token that gets there opens nothing.
//
// The page keeps no state of its own. The server has one state and one ordered feed of events. A
// page that resumes names the last event it had. If the server no longer keeps that event, it sends
// the whole state. A schedule is part of the page's address, and each request plays it from its
// beginning.
//
// A record is made twice. While a cell runs, entries appear as they are seen: the server reads
// traces every 50 ms, and asks MySQL every 200 ms. After the cell, the record is made again from
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
