import {h} from './dom.js';
import {said, t} from './words.js';

// count is a verdict with its number, in one word or two.
export const count = run => t('verdict.' + run.verdict) + (run.n ? ' ' + run.n : '');

// verdict is the same with what was expected, where that is something else.
export const verdict = run => count(run) + (run.surprise ? ', ' + t('expected', {word: t('verdict.' + run.expected)}) : '');

export const verdictChip = run => h('span', {class: 'v big ' + run.verdict + (run.surprise ? ' surprise' : '')}, count(run));

// skipped is why nothing of a topology can run here.
export const skipped = of => t('verdict.skipped') + t('colon') + said(of.missing);

export const notice = (element, words) => { element.textContent = words; element.hidden = !words; };
