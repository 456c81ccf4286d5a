// What the server has sent, and who hears of changes.
export const store = {
  catalog: null, connected: null, preparing: '', score: {right: 0, of: 0},
  runs: new Map(), latest: new Map(), predictions: new Map(), loads: [],
  attempt: null, seen: null, shapes: '', told: [], votes: null, played: null,
};

const listeners = new Set();
// on has a function called with the name of each change and its data. It returns how to end that.
export const on = listener => { listeners.add(listener); return () => listeners.delete(listener); };
const tell = (name, data) => { for (const listener of [...listeners]) listener(name, data); };

// lastRun is the last run of a cell with so many shops, 0 for those of the page.
export const lastRun = (strategy, scenario, shops) => [...store.runs.values()].filter(r => r.strategy === strategy && r.scenario === scenario && (r.shops || 0) === shops && !r.load && r.state !== 'dropped').pop();
export const keyOf = (strategy, scenario) => strategy + '/' + scenario;
export const runOf = (strategy, scenario) => store.latest.get(keyOf(strategy, scenario));
// gridOf is the table that has a scenario: that of one server, of several items, of reservations, or of a topology of
// the database. In those of several items and of reservations, a few customers have a story.
export function gridOf(scenario) {
  const {strategies, scenarios, topologies, baskets, reservations} = store.catalog, has = of => of.scenarios.some(c => c.name === scenario);
  const topology = topologies.find(has);
  if (topology) return {topology, strategies, scenarios: topology.scenarios, tab: '', back: 'topologies/' + topology.name};
  if (has(baskets)) return {...baskets, few: true, baskets: true, tab: 'baskets', back: 'baskets'};
  return has(reservations) ? {...reservations, few: true, tab: 'reservations', back: 'reservations'} : {strategies, scenarios, tab: '', back: ''};
}
// isCell is whether a strategy has a cell under a scenario.
export const isCell = (s, c) => !c.expected || s.name in c.expected;
export const runningRuns = () => [...store.runs.values()].filter(r => r.state === 'running');
export const waitingRuns = () => [...store.runs.values()].filter(r => r.state === 'waiting').sort((a, b) => a.id - b.id);

function keep(run) {
  const known = store.runs.get(run.id);
  store.runs.set(run.id, known ? Object.assign(known, run) : run);
  if (run.load || run.shops) return;
  const key = keyOf(run.strategy, run.scenario), latest = store.latest.get(key);
  if (run.state !== 'dropped') {
    if (!latest || run.id >= latest.id) store.latest.set(key, store.runs.get(run.id));
    return;
  }
  const last = lastRun(run.strategy, run.scenario, 0);
  if (last) store.latest.set(key, last); else store.latest.delete(key);
}

const apply = {
  state(s) {
    store.runs.clear(); store.latest.clear(); store.predictions.clear();
    for (const run of s.runs || []) keep(run);
    for (const p of s.predictions) store.predictions.set(keyOf(p.strategy, p.scenario), p.word);
    Object.assign(store, {score: s.score, preparing: s.preparing, loads: s.loads || [], attempt: s.attempt || null, seen: s.seen || null, shapes: s.seen ? s.seen.shapes : '', told: s.told || [], votes: s.votes || null, played: s.played || null});
  },
  queued(runs) { for (const run of runs) keep(run); },
  running(run) { keep(run); Object.assign(store, {attempt: null, seen: null, shapes: '', told: []}); }, // of several at once, before the first line
  told(line) { store.told.push(line); },
  attempt(a) { Object.assign(store, {attempt: a, seen: null, shapes: ''}); },
  seen(s) { store.seen = s; store.shapes += s.shapes; },
  ended(run) {
    keep(run);
    store.score = run.score;
    if (run.prediction) store.predictions.delete(keyOf(run.strategy, run.scenario));
  },
  dropped(ids) { for (const id of ids || []) if (store.runs.has(id)) keep({...store.runs.get(id), state: 'dropped'}); },
  preparing(what) { store.preparing = what; },
  predicted(p) { if (p.word) store.predictions.set(keyOf(p.strategy, p.scenario), p.word); else store.predictions.delete(keyOf(p.strategy, p.scenario)); },
  load(c) { store.loads.push(c); },
  searching() {},
  votes(v) { store.votes = v; },
  played(p) { store.played = p; },
  explored() {},
};

// take notes what the server has sent, and tells who listens.
export const take = (name, data) => { apply[name](data); tell(name, data); };

const connected = is => {
  if (store.connected !== is) { store.connected = is; tell('connected'); }
};

// How long a connection may be silent. The server sends a heartbeat every 5 s.
const silence = 15000;

// connect listens to the server for as long as the page is open. After a gap it goes on where it was.
export const connect = () => listen('api/events', Object.keys(apply), take);

// listen is the same with the events of any address that have these names.
export function listen(address, names, take) {
  let source = null, last = '', heard = Date.now();
  const came = (name, e) => {
    heard = Date.now();
    connected(true);
    if (e.lastEventId) last = e.lastEventId;
    if (names.includes(name)) take(name, JSON.parse(e.data));
  };
  const open = () => {
    heard = Date.now();
    source = new EventSource(address + (last ? '?after=' + encodeURIComponent(last) : ''));
    for (const name of [...names, 'heartbeat', 'begun']) source.addEventListener(name, e => came(name, e));
    source.onerror = () => connected(false);
  };
  const isOpen = () => source && source.readyState !== EventSource.CLOSED;
  // A browser has six connections to a server, which all its tabs share: a hidden tab leaves them to the others.
  const visible = () => { if (document.hidden) source?.close(); else if (!isOpen()) open(); };
  document.addEventListener('visibilitychange', visible);
  visible();
  setInterval(() => {
    if (document.hidden) return;
    if (!isOpen() || Date.now() - heard > silence) {
      connected(false);
      source?.close();
      open();
    }
  }, 1000);
}
