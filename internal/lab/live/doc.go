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
//	GET    /api/events                server-sent events, see below
//	GET    /api/runs/N?lang=zh        a run with its drawings and entries
//	GET    /api/runs/N/record         its entries, a JSON line each
//	GET    /api/loads/N/FILE          a comparison under load: report.html or result.json
//	POST   /api/runs                  {"cells":[{"strategy":"none","scenario":"pause","seed":1}]}
//	DELETE /api/runs                  ends what runs and drops what waits
//	POST   /api/predictions           {"strategy":"none","scenario":"pause","word":"oversold"}
//	POST   /api/loads                 {"strategies":["none"],"shape":"200/5s","seed":1}
//	POST   /api/positions             {"strategy":"none","customers":2,"schedule":"A.select"}
//	POST   /api/shortest              {"strategy":"none","customers":2}
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
package live
