import {fill, h, ms, svgElement} from './dom.js';
import {serverName, shopName, t} from './words.js';

// A drawing's coordinates are milliseconds and pixels: its view box is the time that is shown.

const columnName = column => column.kind === 'shop' ? shopName(column.name) : column.kind === 'lock' ? t('column.lock', {server: serverName(column.name)}) : t('column.stock');

const steps = [1, 2, 5];
const round = (span, n) => {
  for (let unit = 0.1; ; unit *= 10) for (const s of steps) if (span / (unit * s) <= n) return unit * s;
};

// columnsView shows the columns of one cell between two times.
export function columnsView(columns, height, label) {
  const finished = svgElement('g'), lasting = svgElement('g');
  // The cursor lies over the drawing: it moves without a repaint of the shapes.
  const cursor = h('div', {class: 'cursor', 'aria-hidden': 'true'});
  const bands = columns.map(l => svgElement('rect', {class: 'band', x: -1e6, width: 3e6, y: l.top, height: l.height}));
  const svg = svgElement('svg', {class: 'timeline', preserveAspectRatio: 'none', role: 'img', 'aria-label': label});
  svg.append(...bands, finished, lasting);
  const axis = h('div', {class: 'axis', 'aria-hidden': 'true'});
  const names = h('div', {class: 'names'}, columns.map(l => {
    const name = h('span', {}, columnName(l));
    name.style.top = `calc(${l.top + l.height / 2}px * var(--k))`;
    return name;
  }));
  const notes = columns.map(l => { const n = h('b', {}); n.style.top = `calc(${l.top + l.height / 2}px * var(--k))`; return n; });
  const plot = h('div', {class: 'plot'}, h('div', {class: 'stage'}, svg, cursor), axis);
  const element = h('div', {class: 'columns-view'}, names, plot, h('div', {class: 'notes', 'aria-hidden': 'true'}, notes), laneKey());
  element.style.setProperty('--h', height);
  let from = 0, to = 1, at = null;
  const place = () => {
    cursor.hidden = at === null;
    if (at !== null) cursor.style.transform = `translateX(${Math.min(Math.max((at - from) / (to - from), 0), 1) * 100}%)`;
  };
  return {
    element, plot, svg,
    append(shapes) { if (shapes) finished.insertAdjacentHTML('beforeend', shapes); },
    replace(shapes) { finished.innerHTML = shapes; },
    lasting(shapes) { lasting.innerHTML = shapes; },
    note(i, text) { if (notes[i].textContent !== text) notes[i].textContent = text; },
    window(a, b) {
      if (a === from && Math.max(b, a + 1) === to) return place();
      [from, to] = [a, Math.max(b, a + 1)];
      svg.setAttribute('viewBox', `${from} 0 ${to - from} ${height}`);
      const step = round(to - from, 8), marks = [];
      for (let v = Math.ceil(from / step) * step; v <= to; v += step) {
        const mark = h('span', {}, v >= 1000 ? (Math.round(v / 10) / 100) + ' s' : Math.round(v * 10) / 10 + ' ms');
        mark.style.left = (v - from) / (to - from) * 100 + '%';
        if (v - from < (to - from) * 0.03) mark.style.transform = 'none'; // it would be cut off
        marks.push(mark);
      }
      fill(axis, marks);
      place();
    },
    cursor(v) { at = v; place(); },
    timeAt(clientX) { const box = plot.getBoundingClientRect(); return from + (clientX - box.left) / box.width * (to - from); },
  };
}

const lanes = ['in', 'wait', 'clash', 'slow', 'kill', 'held', 'left', 'over'];
// laneKey names the colours of the columns.
const laneKey = () => h('p', {class: 'key lane-key'}, lanes.map(name => [h('span', {class: 'lane-' + name}, t('lane.' + name)), ' ']));

// gauge shows a lease that runs down.
export function gauge() {
  const hand = svgElement('circle', {class: 'hand', cx: 40, cy: 40, r: 32, pathLength: 100});
  const svg = svgElement('svg', {viewBox: '0 0 80 80', class: 'gauge', 'aria-hidden': 'true'});
  svg.append(svgElement('circle', {class: 'rail', cx: 40, cy: 40, r: 32}), hand);
  const words = h('span', {class: 'gauge-words'});
  const element = h('div', {class: 'gauge-box'}, svg, words);
  return {
    element,
    // show is for a lock as Redis has announced it, at a time.
    show(lock, now, lease) {
      const left = lock.held && lock.expires ? Math.max(1 - (now - lock.from_ms) / lease, 0) : lock.held ? 1 : 0;
      hand.style.strokeDashoffset = 100 - left * 100;
      element.dataset.state = !lock.held ? 'free' : !lock.expires ? 'never' : left < 0.25 ? 'low' : 'held';
      const text = !lock.held ? t('lock.free') : !lock.expires ? t('lock.never') : ms(Math.round(left * lease));
      if (words.textContent !== text) words.textContent = text;
    },
  };
}
