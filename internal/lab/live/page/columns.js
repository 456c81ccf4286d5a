import {fill, h, hideHint, keyed, ms, showHint, svgElement} from './dom.js';
import {serverName, shopName, t} from './words.js';

// A drawing's coordinates are milliseconds and pixels: its view box is the time that is shown.

const columnName = ({kind, name}) => kind === 'shop' ? shopName(name) : kind === 'lock' ? t('column.lock', {server: serverName(name)}) : kind === 'stock' ? t('column.stock') : name;

const steps = [1, 2, 5];
const round = (span, n) => {
  for (let unit = 0.1; ; unit *= 10) for (const s of steps) if (span / (unit * s) <= n) return unit * s;
};

// columnsView shows the columns of one cell between two times.
export function columnsView(columns, height, label, key = laneKey()) {
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
  const element = h('div', {class: 'columns-view'}, names, plot, h('div', {class: 'notes', 'aria-hidden': 'true'}, notes), key);
  element.style.setProperty('--h', height);
  let from = 0, to = 1, at = null, room = 0;
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
      if (a === from && Math.max(b, a + 1) === to && plot.clientWidth === room) return place();
      [from, to, room] = [a, Math.max(b, a + 1), plot.clientWidth];
      svg.setAttribute('viewBox', `${from} 0 ${to - from} ${height}`);
      const step = round(to - from, room ? Math.min(Math.max(room / 70, 2), 8) : 8), marks = [];
      for (let v = Math.ceil(from / step) * step; v <= to; v += step) {
        const mark = h('span', {}, v >= 1000 ? (Math.round(v / 10) / 100) + ' s' : Math.round(v * 10) / 10 + ' ms');
        mark.style.left = (v - from) / (to - from) * 100 + '%';
        if (v - from < (to - from) * 0.03) mark.style.transform = 'none'; // it would be cut off
        if (to - v < (to - from) * 0.03) mark.style.transform = 'translateX(-100%)';
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

// explained draws an explanation: the whole, and closer what is too short to be seen there. Its marks are listed in words.
export function explained(x) {
  const whole = interleaving(x, x.from_ms, x.to_ms), one = v => Math.round(v * 10) / 10;
  return h('div', {}, h('p', {class: 'soft'}, t('drawing.keys')), keyed(whole.element),
    x.closer && [h('h3', {}, t('drawing.closer'), t('colon'), `${one(x.closer[0])} – ${ms(x.closer[1])}`), interleaving(x, ...x.closer).element],
    h('details', {}, h('summary', {}, t('drawing.steps')), h('ol', {class: 'steps-of'}, whole.marks.map(m => h('li', {class: m.alarm ? 'bad' : ''}, h('time', {}, m.at), ' ', m.text)))));
}

const signed = v => (v < 0 ? '−' : '+') + Math.abs(v).toFixed(1);

// interleaving draws an explanation between two times.
function interleaving(x, from, to) {
  const lanes = x.lanes.map(l => ({...l, kind: ''})); // their names are words
  const view = columnsView(lanes, x.height, t('drawing'), '');
  view.append(x.shapes);
  const columnAt = y => lanes.find(l => y >= l.top && y < l.top + l.height), name = y => columnAt(y).name;
  // The hint of a mark says its time. A text stands in a bar where it has room before the next one.
  const spans = [...view.svg.querySelectorAll('rect[data-t]')].map(bar => {
    const [a, y, width, words] = [Number(bar.getAttribute('x')), Number(bar.getAttribute('y')), Number(bar.getAttribute('width')), bar.dataset.t];
    bar.dataset.t = `${bar.classList.contains('both') ? '' : name(y) + t('colon')}${words}, ${signed(a)} – ${signed(a + width)} ms`;
    return {a, until: a + width, column: columnAt(y), words, class: bar.getAttribute('class')};
  }).filter(s => s.class !== 's-waiting' && s.class !== 'both');
  spans.forEach((s, i) => { for (const over of spans.slice(i + 1)) if (over.column === s.column && over.a >= s.a) s.until = Math.min(s.until, over.a); });
  const labels = spans.map(s => ({at: (s.a + s.until) / 2, width: s.until - s.a, element: h('span', {}, s.words), y: s.column.top + s.column.height / 2}));
  const moment = x.moment && h('b', {class: x.moment.alarm ? 'alarm' : ''}, x.moment.alarm ? '▲ ' : '◆ ', x.moment.what);
  for (const l of labels) l.element.style.top = `calc(${l.y}px * var(--k))`;
  const over = h('div', {class: 'labels', 'aria-hidden': 'true'}, labels.map(l => l.element), moment);
  view.plot.firstChild.append(over);
  const place = () => {
    view.window(from, to);
    const across = over.clientWidth, at = v => (v - from) / (to - from) * across;
    for (const l of labels) {
      const [a, b] = [Math.max(at(l.at - l.width / 2), 0), Math.min(at(l.at + l.width / 2), across)];
      l.element.style.left = (a + b) / 2 + 'px';
      l.element.style.visibility = l.element.offsetWidth + 6 > b - a ? 'hidden' : '';
    }
    if (!moment) return;
    const half = moment.offsetWidth / 2;
    moment.style.visibility = x.moment.at_ms < from || x.moment.at_ms > to || 2 * half > across ? 'hidden' : '';
    moment.style.left = Math.max(half, Math.min(at(x.moment.at_ms), across - half)) + 'px';
  };
  new ResizeObserver(place).observe(view.plot);
  const dots = [...view.svg.querySelectorAll('.step')].map(dot => {
    const [at, y] = dot.getAttribute('d').slice(1).split(/[ h]/).map(Number), text = name(y) + t('colon') + dot.dataset.t;
    dot.dataset.t = `${signed(at)} ms · ${text}`;
    return {dot, ms: at, at: signed(at) + ' ms', text, alarm: dot.classList.contains('alarm')};
  }).sort((a, b) => a.ms - b.ms);
  const shown = dots.filter(d => d.ms >= from && d.ms <= to);
  let on = -1;
  const element = h('div', {class: 'walk', tabindex: '0', role: 'group', 'aria-label': t('drawing'), onkeydown: e => {
    if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight' || !shown.length) return;
    e.preventDefault();
    if (shown[on]) shown[on].dot.classList.remove('on');
    on = Math.min(Math.max(on + (e.key === 'ArrowRight' ? 1 : -1), 0), shown.length - 1);
    shown[on].dot.classList.add('on');
    showHint(shown[on].dot);
  }, onfocusout: hideHint}, view.element);
  return {element, marks: dots};
}

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
