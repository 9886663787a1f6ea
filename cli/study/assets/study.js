const cells = JSON.parse(document.getElementById('cells').textContent);
const panel = document.getElementById('cell');
const make = (tag, text) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; return e; };
function show() {
  const key = decodeURIComponent(location.hash.slice(1)), cell = cells[key];
  panel.hidden = !cell;
  if (!cell) return;
  panel.replaceChildren();
  const close = make('button', 'close');
  close.onclick = () => { history.replaceState(null, '', location.pathname); show(); };
  panel.append(close, make('h2', key), make('p', cell.verdict + (cell.licences.length ? ' under ' + cell.licences.join(' ') : '')));
  if (cell.reason) panel.append(make('pre', cell.reason));
  for (const claim of cell.claims) {
    panel.append(make('h3', claim.claim + ': ' + claim.verdict), make('p', claim.about + ' (' + claim.engine + ')'));
    if (claim.reason) panel.append(make('pre', claim.reason));
    if (claim.rests_on.length) panel.append(make('p', 'rests on: ' + claim.rests_on.join(', ')));
  }
  for (const [word, why] of Object.entries(cell.breaks)) panel.append(make('h3', 'without ' + word), make('pre', why || ''));
  panel.append(make('h3', 'costs'), make('pre', JSON.stringify(cell.costs, null, 1)));
  if (cell.certificate) panel.append(make('p', `certificate: ${cell.certificate.bytes} bytes; the kernel accepts ${cell.certificate.accepted} of ${cell.certificate.claims} claims`));
  if (cell.counterexample) panel.append(make('h3', 'counterexample'), make('pre', JSON.stringify(cell.counterexample, null, 1)));
}
addEventListener('hashchange', show); addEventListener('keydown', e => { if (e.key === 'Escape') { history.replaceState(null, '', location.pathname); show(); } });
show();
for (const head of document.querySelectorAll('thead th')) head.onclick = () => {
  const body = head.closest('table').tBodies[0], at = head.cellIndex, up = head.dataset.up !== '1';
  head.dataset.up = up ? '1' : '0';
  const order = (a, b) => a.cells[at].textContent.localeCompare(b.cells[at].textContent, 'en', {numeric: true});
  body.append(...[...body.rows].sort((a, b) => up ? order(a, b) : order(b, a)));
};
