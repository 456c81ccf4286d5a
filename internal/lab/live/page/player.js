import {fill, h, ms} from './dom.js';
import {doneName, serverName, shopName, t} from './words.js';
import {gauge, columnsView} from './columns.js';

const label = request => '#' + request.slice(request.lastIndexOf('-') + 1);

// say says an entry in words.
function say(e) {
  const values = {request: e.request ? label(e.request) : '', stock: e.stock, read: e.read, left: e.left, order: e.order, sold: e.sold, what: e.what, key: e.key,
    fault: e.fault, outcome: e.outcome ? t('outcome.' + e.outcome) : '', latency: e.latency_ms ? ms(e.latency_ms) : '', shop: e.shop ? shopName(e.shop) : ''};
  switch (e.kind) {
    case 'point': return t('point.' + e.point, values) + (e.fault ? ' · ' + t('entry.fault', values) : '');
    case 'done': return t(e.over ? 'entry.done.over' : 'entry.done', {...values, what: doneName(e.what)});
    default: return t('entry.' + e.kind, values);
  }
}

// command is what a server did in an entry, in its own words; empty for what no server did.
function command(e) {
  switch (e.kind) {
    case 'lock': return {server: e.server, text: `${e.what.toUpperCase()} ${e.key || ''}`};
    case 'order': return {server: 'mysql', text: `${e.left === undefined ? `stock ${e.read} → ${e.stock}, ` : ''}INSERT order ${e.order}${e.token ? ', token ' + e.token : ''}`};
    case 'point': return e.point === 'read' && e.stock !== undefined ? {server: 'mysql', text: `SELECT stock → ${e.stock}`} : null;
  }
  return null;
}

// states are what stood after each entry: stock, orders, who is in the section, the lock.
function states(replay) {
  const first = replay.lanes.find(l => l.kind === 'lock');
  let now = {stock: replay.initial, sold: 0, inside: [], lock: {held: false, expires: false, from_ms: 0}};
  const known = new Set(), wrote = new Set();
  return replay.entries.map(e => {
    now = {...now};
    const leave = () => { now.inside = now.inside.filter(i => i.request !== e.request); };
    switch (e.kind) {
      case 'order': now.stock = e.left ?? e.stock; now.sold += e.read - e.stock; break;
      case 'answered': leave(); break;
      case 'point':
        if (e.point === 'acquired') known.add(e.request);
        if (['acquiring', 'acquired', 'read'].includes(e.point) && !now.inside.some(i => i.request === e.request) && !wrote.has(e.request))
          now.inside = [...now.inside, {request: e.request, shop: e.shop}];
        if (e.point === 'released' || e.point === 'written' && !known.has(e.request) || (e.fault || '').endsWith('kill')) { leave(); wrote.add(e.request); }
        break;
      case 'lock':
        if (!first || e.server !== first.name || (replay.ignore || []).includes(e.key)) break;
        if (['del', 'expired', 'evicted', 'rename_from', 'move_from', 'gone'].includes(e.what)) now.lock = {...now.lock, held: false};
        else if (e.what === 'expire') now.lock = {...now.lock, expires: true, from_ms: e.at_ms};
        else if (e.what === 'persist') now.lock = {...now.lock, expires: false};
        else now.lock = {held: true, expires: now.lock.held && now.lock.expires, from_ms: e.at_ms};
    }
    return now;
  });
}

// lastAt is the index of the last entry until a time, -1 for none.
function lastAt(entries, time) {
  let low = 0, high = entries.length;
  while (low < high) { const mid = (low + high) >> 1; if (entries[mid].at_ms <= time) low = mid + 1; else high = mid; }
  return low - 1;
}

const slowest = 200;

// player replays one record, or two on one clock.
export function player(sides) {
  const ends = Math.max(...sides.map(s => s.replay.ends_ms), 1);
  const all = sides.flatMap((s, i) => s.replay.entries.map(e => ({...e, side: i}))).filter(e => e.kind !== 'look').sort((a, b) => a.at_ms - b.at_ms);
  const views = sides.map(s => {
    const columns = columnsView(s.replay.lanes, s.replay.height, t('replay.label', {cell: s.title}));
    columns.replace(s.replay.shapes);
    const lock = gauge();
    const numbers = {};
    for (const name of ['stock', 'sold', 'over']) numbers[name] = h('b', {});
    const inside = h('p', {class: 'inside'});
    const panel = h('div', {class: 'now'},
      h('div', {class: 'count'}, numbers.stock, h('span', {}, t('stock'))),
      h('div', {class: 'count'}, numbers.sold, h('span', {}, t('orders'))),
      h('div', {class: 'count over'}, numbers.over, h('span', {}, t('oversold'))), lock.element, inside);
    return {columns, lock, numbers, inside, panel, states: states(s.replay), replay: s.replay, element: h('div', {class: 'side'}, sides.length > 1 && h('h3', {}, s.title, ' ', s.chip), panel, columns.element)};
  });
  let at = 0, playing = 0, last = 0, frame = 0, width = ends, from = 0, event = -1, tall = 0;
  const speed = () => Math.pow(slowest, (Number(slider.value) - 100) / 100);
  const slider = h('input', {type: 'range', id: 'speed', min: 0, max: 100, step: 1, value: 35, 'aria-label': t('speed'), oninput: () => paintSpeed()});
  const speedWords = h('output', {for: 'speed'});
  const clock = h('output', {class: 'clock', 'aria-live': 'off'});
  const position = h('input', {type: 'range', class: 'position', id: 'position', min: 0, max: ends, step: 'any', value: 0, 'aria-label': t('position'), oninput: () => { stop(); go(Number(position.value)); }});
  const paintSpeed = () => { const s = speed(); speedWords.textContent = s > 0.95 ? '1' : '1/' + Math.round(1 / s); slider.setAttribute('aria-valuetext', speedWords.textContent); };
  const items = [];
  const list = h('ol', {class: 'entries', tabindex: '0', 'aria-label': t('record')}, all.map((e, i) => {
    const done = command(e);
    const item = h('li', {class: 'entry ' + e.kind + (sides.length > 1 ? ' side' + e.side : ''), onclick: () => { stop(); step(i); }},
      h('time', {}, e.at_ms.toFixed(1)), h('span', {class: 'who'}, e.shop ? shopName(e.shop) : serverName(e.server || 'MySQL'), e.request ? ' ' + label(e.request) : ''), h('span', {}, say(e)),
      done && h('code', {}, done.text));
    items.push(item);
    return item;
  }));
  const index = time => lastAt(all, time);

  function paint() {
    if (width < ends) {
      if (at < from + width * 0.15) from = Math.max(at - width * 0.3, 0);
      if (at > from + width * 0.85) from = Math.min(at - width * 0.5, ends - width);
      from = Math.max(from, 0);
    } else from = 0;
    for (const v of views) {
      v.columns.window(from, from + Math.min(width, ends));
      v.columns.cursor(at);
      const now = v.states[lastAt(v.replay.entries, at)] || {stock: v.replay.initial, sold: 0, inside: [], lock: {held: false}};
      v.numbers.stock.textContent = now.stock;
      v.numbers.sold.textContent = now.sold;
      const over = Math.max(now.sold - v.replay.initial, 0);
      v.numbers.over.textContent = over ? '+' + over : '0';
      v.panel.classList.toggle('broken', over > 0);
      v.lock.show(now.lock, at, v.replay.lease_ms);
      const who = now.inside.map(i => `${shopName(i.shop)} ${label(i.request)}`).join(' · ') || t('nobody');
      const text = t('inside', {who});
      if (v.inside.textContent !== text) v.inside.textContent = text;
      v.inside.classList.toggle('two', v.replay.exclusive && now.inside.length > 1);
    }
    position.value = at;
    position.setAttribute('aria-valuetext', ms(at));
    clock.textContent = at.toFixed(1) + ' ms';
    const i = index(at);
    if (i !== event) {
      if (items[event]) items[event].removeAttribute('aria-current');
      event = i;
      if (items[i]) {
        items[i].setAttribute('aria-current', 'step');
        if (!tall) tall = list.scrollHeight / items.length; // all are of one height, and asking each is slow
        list.scrollTop = i * tall - list.clientHeight / 2;
      }
    }
  }
  function go(time) { at = Math.min(Math.max(time, 0), ends); paint(); }
  // step goes to an entry, which is then the last that has happened.
  function step(i) { const e = all[Math.min(Math.max(i, 0), all.length - 1)]; if (e) go(e.at_ms + 1e-6); }
  function tick(now) {
    if (!playing) return;
    go(at + (now - last) * speed() * playing);
    last = now;
    if (playing > 0 && at >= ends || playing < 0 && at <= 0) return stop();
    frame = requestAnimationFrame(tick);
  }
  function play(direction) {
    if (playing === direction) return stop();
    if (direction > 0 && at >= ends) at = 0;
    if (direction < 0 && at <= 0) at = ends;
    playing = direction;
    last = performance.now();
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(tick);
    buttons();
  }
  function stop() { playing = 0; cancelAnimationFrame(frame); buttons(); }
  function buttons() {
    forward.setAttribute('aria-pressed', playing > 0);
    forward.textContent = playing > 0 ? '❚❚' : '▶';
    back.setAttribute('aria-pressed', playing < 0);
    back.textContent = playing < 0 ? '❚❚' : '◀';
  }
  function zoom(factor, around = at) {
    const before = width;
    width = Math.min(Math.max(width * factor, 5), ends);
    from = Math.min(Math.max(around - (around - from) * width / before, 0), Math.max(ends - width, 0));
    paint();
  }
  const control = (text, phrase, action) => h('button', {type: 'button', 'aria-label': t(phrase), title: t(phrase), onclick: action}, text);
  const back = control('◀', 'play.back', () => play(-1)), forward = control('▶', 'play.forward', () => play(1));
  back.id = 'play-back'; forward.id = 'play-forward';
  const decisive = Math.max(...sides.map(s => s.replay.decisive || 0));
  const controls = h('div', {class: 'controls', role: 'group', 'aria-label': t('replay')},
    control('|◀', 'step.back', () => { stop(); step(index(at - 2e-6) < index(at) ? index(at) - 1 : index(at)); }), back, forward,
    control('▶|', 'step.forward', () => { stop(); step(index(at) + 1); }),
    h('label', {class: 'speed'}, t('speed'), slider, speedWords), clock,
    h('span', {class: 'spring'}),
    decisive > 0 && h('button', {type: 'button', class: 'decisive', id: 'decisive', onclick: () => { stop(); width = Math.min(ends, 400); from = Math.max(decisive - width * 0.6, 0); go(decisive); }}, t('decisive')),
    control('−', 'zoom.out', () => zoom(2)), control('+', 'zoom.in', () => zoom(0.5)), control('↔', 'zoom.whole', () => { width = ends; paint(); }));
  const element = h('section', {class: 'player', tabindex: '0', 'aria-label': t('replay.keys')}, controls, position, views.map(v => v.element),
    h('details', {class: 'record', open: true}, h('summary', {}, t('record')), list));
  element.addEventListener('keydown', e => {
    if (e.target.tagName === 'INPUT' || e.ctrlKey || e.metaKey || e.altKey) return;
    const key = {
      ArrowRight: () => { stop(); step(index(at) + 1); }, ArrowLeft: () => { stop(); step(index(at) - 1); },
      ' ': () => play(e.shiftKey ? -1 : 1), Home: () => { stop(); go(0); }, End: () => { stop(); go(ends); },
      '+': () => zoom(0.5), '-': () => zoom(2), ArrowUp: () => { slider.value = Number(slider.value) + 5; paintSpeed(); }, ArrowDown: () => { slider.value = Number(slider.value) - 5; paintSpeed(); },
    }[e.key];
    if (!key || e.key === ' ' && ['BUTTON', 'SUMMARY'].includes(e.target.tagName)) return;
    e.preventDefault();
    key();
  });
  for (const v of views) {
    v.columns.plot.addEventListener('pointerdown', e => { stop(); go(v.columns.timeAt(e.clientX)); v.columns.plot.setPointerCapture(e.pointerId); });
    v.columns.plot.addEventListener('pointermove', e => { if (e.buttons) go(v.columns.timeAt(e.clientX)); });
    v.columns.plot.addEventListener('wheel', e => { if (!e.ctrlKey && !e.shiftKey) return; e.preventDefault(); zoom((e.deltaY || e.deltaX) > 0 ? 1.3 : 1 / 1.3, v.columns.timeAt(e.clientX)); }, {passive: false});
  }
  paintSpeed();
  go(ends);
  new ResizeObserver(() => { event = -1; tall = 0; paint(); }).observe(list); // its entries are as tall as its width lets them be
  return {element, stop, go, step, count: all.length};
}
