// The API of the server: questions, operations, the stream. Nothing else is ever asked.

export const session = { user: '', role: 'view', csrf: '', version: '' };
let onEnd = () => {};
export const whenEnded = (act) => { onEnd = act; };

async function answer(response) {
  let value = {};
  try { value = await response.json(); } catch { /* no JSON */ }
  if (response.status === 401) onEnd();
  if (!response.ok) throw new Error(value.error || `status ${response.status}`);
  return value;
}

export const get = async (path) => answer(await fetch(`/api/1/${path}`, { credentials: 'same-origin' }));

export async function post(path, body) {
  const headers = { 'Content-Type': 'application/json', 'X-Copal-Csrf': session.csrf };
  return answer(await fetch(`/api/1/${path}`, { method: 'POST', credentials: 'same-origin', headers, body: JSON.stringify(body) }));
}

export async function begin(body) {
  Object.assign(session, body ? await post('login', body) : await get('session'));
  return session;
}

export const may = () => session.role === 'operate';

// Calls act with each set of figures, and state with 'live' or 'wait'. The browser connects again by
// itself; a session that has ended is found out by asking.
export function stream(act, state) {
  const source = new EventSource('/api/1/stream');
  source.onmessage = (event) => { state('live'); act(JSON.parse(event.data)); };
  source.onerror = () => {
    state('wait');
    get('session').catch(() => {});
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (!closed) next = stream(act, state); }, 1500);
  };
  source.addEventListener('end', () => { close(); onEnd(); });
  let closed = false, next = null;
  const close = () => { closed = true; source.close(); if (next) next(); };
  return close;
}
