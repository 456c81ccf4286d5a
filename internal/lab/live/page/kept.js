// What a browser keeps for the page. One that keeps nothing, as some do of a page from a file, forgets it with the page.
function storage(name) {
  try {
    const kept = window[name];
    kept.getItem('');
    return kept;
  } catch {
    const kept = new Map();
    return {getItem: key => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, String(value)), removeItem: key => kept.delete(key)};
  }
}

export const kept = storage('localStorage');
export const session = storage('sessionStorage');
