// The page: login, panels, keyboard, and the stream of figures.
import { h, set } from './dom.js';
import { begin, stream, session, post, whenEnded } from './api.js';
import * as panels from './panels.js';
import * as operate from './operate.js';

const $ = (id) => document.getElementById(id);
const main = $('main'), nav = $('nav'), state = $('state'), filter = $('filter');
const app = { figures: null, filtered: '', shown: [], say, filter: (text) => { filter.value = text; filter.dispatchEvent(new Event('input')); filter.focus(); } };
let stop = null, said = 0;

function say(text) {
  // At most one announcement in five seconds.
  const wait = Math.max(0, said + 5000 - Date.now());
  setTimeout(() => { said = Date.now(); set($('live'), text); }, wait);
}

function show(kind, text) {
  state.className = `pill ${kind}`;
  set(state, text);
}

// Theme: that of the system, or a choice that is kept.
const THEMES = ['auto', 'light', 'dark'];
let theme = 'auto';
try { theme = localStorage.getItem('copal-theme') || 'auto'; } catch { /* no storage */ }
function paint() {
  if (theme === 'auto') delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
  set($('theme'), `Theme: ${theme}`);
}
$('theme').addEventListener('click', () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % 3];
  try { localStorage.setItem('copal-theme', theme); } catch { /* no storage */ }
  paint();
});
paint();

function login(why) {
  if (stop) { stop(); stop = null; }
  nav.hidden = true;
  $('find').hidden = true;
  $('logout').hidden = true;
  set($('user'), '');
  show('plain', 'logged out');
  const user = h('input', { id: 'name', autocomplete: 'username', required: true }), password = h('input', { id: 'password', type: 'password', autocomplete: 'current-password', required: true });
  const error = h('p', { cls: 'error', role: 'alert', text: why || '' });
  const form = h('form', { on: { submit: async (event) => {
    event.preventDefault();
    set(error, '');
    try { await begin({ user: user.value, password: password.value }); start(); } catch (failure) { set(error, failure.message); password.value = ''; password.focus(); }
  } } }, h('label', { cls: 'field', for: 'name' }, 'User', user), h('label', { cls: 'field', for: 'password' }, 'Password', password), h('button', { cls: 'main', text: 'Log in' }), error);
  main.replaceChildren(h('section', { cls: 'login', 'aria-labelledby': 'login-title' }, h('h2', { id: 'login-title', cls: 'title', text: 'Log in to Copal' }), h('p', { cls: 'sub' }, 'On the server, ', h('code', { text: 'copal dash' }), ' prints an address that logs in once. Users of ', h('code', { text: '-o dash_users' }), ' log in here.'), form));
  user.focus();
}

async function start() {
  app.figures = null;
  set($('user'), `${session.user} (${session.role})`);
  $('logout').hidden = false;
  $('find').hidden = false;
  app.shown = [panels.now(app), panels.why(app), panels.origins(app), panels.tops(app), panels.cache(app), operate.invalidate(app), panels.requests(app), operate.vcl(app), panels.health(app)];
  // Cache and invalidation share a row, as do why and origins.
  app.shown[7].element.classList.add('wide');
  const banner = h('p', { cls: 'banner', role: 'status', hidden: true });
  main.replaceChildren(banner, ...app.shown.map((one) => one.element));
  nav.replaceChildren(...app.shown.map((one, place) => h('a', { href: `#${one.id}`, text: one.title, title: `Key ${place + 1}` })));
  nav.hidden = false;
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) seen.add(entry.target.id); else seen.delete(entry.target.id);
    }
    const first = app.shown.find((one) => seen.has(one.id));
    for (const link of nav.children) {
      if (first && link.hash === `#${first.id}`) link.setAttribute('aria-current', 'true'); else link.removeAttribute('aria-current');
    }
    load(true);
  }, { rootMargin: '-100px 0px 0px' });
  app.shown.forEach((one) => watch.observe(one.element));
  const loaded = new Map();
  function load(isNew) {
    const now = Date.now();
    for (const one of app.shown) {
      if (!one.load || !seen.has(one.id) || document.hidden) continue;
      const last = loaded.get(one.id) || 0;
      if (now - last < (isNew && !last ? 0 : one.period * 1000)) continue;
      loaded.set(one.id, now);
      one.load().catch(() => {});
    }
  }
  app.reload = () => { loaded.clear(); load(true); };
  const open = () => app.shown[0].open().catch(() => {});
  open();
  let was = 'wait', worker = true;
  stop = stream((figures) => {
    app.figures = figures;
    if (document.hidden) return;
    for (const one of app.shown) if (one.update) one.update(figures);
    show(figures.up.worker ? 'good' : 'bad', figures.up.worker ? 'live' : 'worker down');
    if (worker !== figures.up.worker) { worker = figures.up.worker; say(worker ? 'The worker serves again' : 'The worker is down'); }
    banner.hidden = figures.log.overruns === 0;
    if (figures.log.overruns) set(banner, `The log was written faster than it was read ${figures.log.overruns} times: rankings and requests are incomplete (about ${figures.log.lost} requests). Figures and charts are exact. Raise vsl_space.`);
    load(false);
  }, (next) => {
    if (next === 'wait') show('wait', 'reconnecting');
    else if (was === 'wait') open();
    was = next;
  });
  if (location.hash.length > 1 && !location.hash.startsWith('#t=')) { const target = $(location.hash.slice(1)); if (target) target.scrollIntoView(); }
}

let waiting = null;
filter.addEventListener('input', () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { app.filtered = filter.value.trim(); if (app.reload) app.reload(); }, 150);
});

document.addEventListener('keydown', (event) => {
  const typing = event.target.matches('input, select, textarea');
  if (event.key === 'Escape' && event.target === filter) { filter.value = ''; filter.dispatchEvent(new Event('input')); filter.blur(); }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  if (event.key === '/' && !nav.hidden) { event.preventDefault(); filter.focus(); }
  const one = app.shown[Number(event.key) - 1];
  if (one && !nav.hidden) { location.hash = one.id; one.element.scrollIntoView(); one.element.focus({ preventScroll: true }); }
});

$('logout').addEventListener('click', async () => { try { await post('logout', {}); } catch { /* over anyway */ } login(); });
whenEnded(() => { if (!nav.hidden) login('The session is over.'); });

(async () => {
  const token = location.hash.startsWith('#t=') ? location.hash.slice(3) : '';
  if (token) {
    // The token must stay neither in the address nor in the history.
    history.replaceState(null, '', '/');
    try { await begin({ token }); return start(); } catch (failure) { return login(failure.message); }
  }
  try { await begin(); return start(); } catch { return login(); }
})();
