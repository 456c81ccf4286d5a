import {session} from './kept.js';
import {answer, isSaved} from './saved.js';
import {said, t} from './words.js';

// The token comes in the part of the link behind #, which no browser sends to any server.
export function takeToken() {
  const inLink = location.hash.match(/^#token=([^&]+)$/);
  if (!inLink) return;
  session.setItem('token', inLink[1]);
  history.replaceState(null, '', location.pathname + '#/');
}
takeToken();

export const mayDrive = () => Boolean(session.getItem('token'));

// How many requests are under way is in data-fetching: a page with 0 has what it asked for.
const root = document.documentElement.dataset;
async function counted(read) {
  root.fetching = Number(root.fetching || 0) + 1;
  try {
    return await read();
  } finally {
    root.fetching -= 1;
  }
}

const send = (url, options, read) => counted(async () => read(await fetch(url, options).catch(() => { throw new Error(t('offline')); })));

// ask sends what starts something. It returns the answer, or throws an Error that says why not. A
// signal ends the request, and what it started if nobody else waits for that.
export const ask = (method, url, body, signal) => send(url, {
  method, signal,
  headers: {'Authorization': 'Bearer ' + (session.getItem('token') || ''), 'Content-Type': 'application/json'},
  body: body && JSON.stringify(body),
}, async response => {
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) session.removeItem('token');
  throw Object.assign(new Error(response.status === 401 ? t('drive.how') : said(answer.say || answer.detail) || response.statusText), {problem: answer.problem});
});

export const get = url => isSaved ? counted(() => answer(url)) : send(url, {}, async response => {
  if (!response.ok) throw new Error(said((await response.json().catch(() => ({}))).say) || response.statusText);
  return response.json();
});

// confirmToken forgets a token that the server does not know, such as that of a lab which was started again.
export const confirmToken = async () => { if (mayDrive()) await ask('POST', 'api/token', {}).catch(() => {}); return mayDrive(); };

export const start = cells => ask('POST', 'api/runs', {cells});
