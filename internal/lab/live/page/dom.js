import {store} from './store.js';
import {doneName, known, shopName, t} from './words.js';

// h makes an element. Names that begin with on are listeners; null and false leave an attribute out.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  return fill(element, ...children);
}

// markup makes an element of what Go has drawn and escaped.
export function markup(className, html) {
  const element = h('div', {class: className});
  element.innerHTML = html;
  return element;
}

// keyed is something drawn with a key of the colours that it has.
export function keyed(element) {
  const has = new Set([...element.querySelectorAll('svg [class]')].flatMap(mark => [...mark.classList]));
  const keys = [...store.catalog.outcomes.map(o => ['o-' + o, 'k-' + o, 'outcome.' + o]),
    ...['p50', 'p99', 's-waiting', 's-inside', 's-open', 's-fault', 's-locked', 's-value', 'both', 'shade'].map(c => [c, 'k-' + c, 'key.' + c])];
  return h('div', {}, element, h('p', {class: 'key'}, keys.filter(([mark]) => has.has(mark)).map(([, key, phrase]) => [h('span', {class: key}, t(phrase)), ' '])));
}

// chart is a chart with its title.
export const chart = (title, drawn) => drawn && h('figure', {}, h('figcaption', {}, title), keyed(markup('', drawn)));

export const svgElement = (tag, attributes = {}) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

// fill replaces what an element has.
export const fill = (element, ...children) => {
  element.replaceChildren(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false));
  return element;
};

// hear has a screen reader say something. A region that is made anew is not read: this one stays.
export const hear = words => { document.getElementById('heard').textContent = words; };

// focused returns how to give the focus back to what has its id, when all is drawn anew.
export function focused() {
  const {id} = document.activeElement;
  return () => { if (id && document.activeElement === document.body) document.getElementById(id)?.focus(); };
}

// entitled names what is shown in the browser's tab and in its history.
export const entitled = title => { document.title = [title, 'stocklock'].filter(Boolean).join(' · '); };

export const ms = v => (Math.abs(v) >= 100 ? Math.round(v) : Math.round(v * 10) / 10) + ' ms';

// Hints: what a mark of a drawing stands for, under the pointer or the focus.
const hint = word => /^shop \d+$/.test(word) ? shopName(word) : known('point.' + word, doneName(word));
const tip = document.getElementById('tip');
export const hideHint = () => { tip.hidden = true; };
export const showHint = mark => {
  const box = mark.getBoundingClientRect();
  tip.textContent = mark.dataset.t.split(' · ').map(hint).join(' · ');
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(box.left + box.width / 2, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = (box.bottom + tip.offsetHeight + 12 > innerHeight ? box.top - tip.offsetHeight - 8 : box.bottom + 8) + 'px';
};
addEventListener('pointerover', e => {
  const mark = e.target.closest && e.target.closest('[data-t]');
  if (mark && mark.dataset.t) showHint(mark); else hideHint();
});
