import {fill, h} from './dom.js'; export function pairView(body) { fill(body, h('p', {}, 'pair')); return null; }
