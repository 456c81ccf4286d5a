'use strict';
(() => {
  const tip = document.getElementById('tip');
  const root = document.documentElement;

  // The theme: the system's, until the button is pressed.
  const theme = document.getElementById('theme');
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const label = () => { theme.textContent = isDark() ? 'Light' : 'Dark'; theme.setAttribute('aria-label', theme.textContent + ' theme'); };
  theme.hidden = false;
  theme.onclick = () => { root.dataset.theme = isDark() ? 'light' : 'dark'; label(); };
  label();

  // Focus follows the address: into a cell, and back to where one came from.
  let last = null;
  const openCell = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    return id.includes(':') && document.getElementById(id);
  };
  const follow = () => {
    const cell = openCell();
    tip.hidden = true;
    if (cell) {
      last = cell.id;
      document.title = 'stocklock: ' + cell.id;
      scrollTo(0, 0);
      cell.querySelector('h2').focus({preventScroll: true});
    } else if (last) {
      document.title = 'stocklock';
      const from = [...document.querySelectorAll('.matrix a')].find(a => a.getAttribute('href') === '#' + last);
      if (from) from.focus();
      last = null;
    }
  };
  addEventListener('hashchange', follow);
  follow();

  // The arrow keys move in the matrix, and step through a drawing; Escape leads back.
  addEventListener('keydown', e => {
    if (e.key === 'Escape' && openCell()) { location.hash = '#matrix'; return; }
    const link = e.target.closest && e.target.closest('.matrix a');
    const walk = e.target.classList && e.target.classList.contains('walk');
    if (link) {
      const row = link.closest('tr'), at = link.closest('td').cellIndex;
      const to = {ArrowLeft: [row, at - 1], ArrowRight: [row, at + 1], ArrowUp: [row.previousElementSibling, at], ArrowDown: [row.nextElementSibling, at]}[e.key];
      const next = to && to[0] && to[0].cells[to[1]] && to[0].cells[to[1]].querySelector('a');
      if (next) { e.preventDefault(); next.focus(); }
    } else if (walk && (e.key === 'ArrowLeft' || e.key === 'ArrowRight')) {
      e.preventDefault();
      const steps = [...e.target.querySelectorAll('.step')].sort((a, b) => a.cx.baseVal.value - b.cx.baseVal.value);
      const on = steps.findIndex(s => s.classList.contains('on'));
      const next = steps[Math.min(Math.max(on + (e.key === 'ArrowRight' ? 1 : -1), 0), steps.length - 1)];
      if (!next) return;
      if (on >= 0) steps[on].classList.remove('on');
      next.classList.add('on');
      show(next);
      stepping = true;
    }
  });

  // What a mark stands for. While keys step through, what the page moves under a resting pointer counts for nothing.
  let stepping = false;
  const show = mark => {
    const box = mark.getBoundingClientRect();
    tip.textContent = mark.dataset.t;
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(box.left + box.width / 2, innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = (box.bottom + tip.offsetHeight + 12 > innerHeight ? box.top - tip.offsetHeight - 8 : box.bottom + 8) + 'px';
  };
  addEventListener('pointermove', () => { stepping = false; });
  addEventListener('pointerover', e => {
    if (stepping) return;
    const mark = e.target.closest && e.target.closest('[data-t]');
    if (mark) show(mark); else tip.hidden = true;
  });
})();
