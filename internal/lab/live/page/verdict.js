import {h} from './dom.js';
import {known, said, t} from './words.js';

// count is a verdict with its number, in one word or two.
export const count = run => t('verdict.' + run.verdict) + (run.n ? ' ' + run.n : '');

// verdict is the same with what was expected, where that is something else.
export const verdict = run => count(run) + (run.surprise ? t('comma') + t('expected', {word: t('verdict.' + run.expected)}) : '');

export const verdictChip = run => h('span', {class: 'v big ' + run.verdict + (run.surprise ? ' surprise' : '')}, count(run));

// ended is how a schedule ended, and why.
export const ended = o => [h('span', {class: 'v ' + o.verdict}, count(o)), ' ', t('ended.orders', {orders: (o.orders || []).length, units: o.stock}), o.cause && [t('colon'), known('cause.' + o.cause, o.cause)]];

// skipped is why nothing of a topology can run here.
export const skipped = of => t('verdict.skipped') + t('colon') + said(of.missing);

export const notice = (element, words) => { element.textContent = words; element.hidden = !words; };

// trying does something, and has an element say why it failed.
export const trying = (element, act) => act().then(() => notice(element, ''), e => notice(element, e.message));
