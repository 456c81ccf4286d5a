import {fill, h} from './dom.js'; export function loadView(body) { fill(body, h('p', {}, 'load')); return null; }
