// Programs as differences: one above the other or side by side, lines that stay the same folded away.
const AROUND = 3;
function diffLines(rows, old, fresh) {
  const found = [];
  let i = 0, j = 0;
  for (const [sign, a, b] of rows) {
    if (sign === "=") for (let k = 0; k < a; k++) found.push({ sign, i: i++, j: j++ });
    else if (sign === "-") for (let k = 0; k < a; k++) found.push({ sign, i: i++, j: null });
    else if (sign === "+") for (let k = 0; k < a; k++) found.push({ sign, i: null, j: j++ });
    else found.push({ sign, i: i++, j: j++, gone: a, fresh: b });
  }
  return found;
}
function marked(text, marks) {
  const parts = [];
  let at = 0;
  for (const [start, end] of marks || []) { parts.push(text.slice(at, start), h("mark", {}, text.slice(start, end))); at = end; }
  parts.push(text.slice(at));
  return parts;
}
function folded(lines, open) {
  const groups = [];
  let k = 0;
  while (k < lines.length) {
    let end = k;
    while (end < lines.length && lines[end].sign === "=") end++;
    if (end > k) {
      const from = k === 0 ? k : k + AROUND, to = end === lines.length ? end : end - AROUND;
      if (!open && to - from > 2) {
        groups.push(...lines.slice(k, from), { fold: lines.slice(from, to) }, ...lines.slice(to, end));
      } else groups.push(...lines.slice(k, end));
      k = end;
    } else groups.push(lines[k++]);
  }
  return groups;
}
const number = (n) => h("td", { class: "no" }, n === null ? "" : String(n + 1));
function besideRow(line, old, fresh) {
  const left = line.i === null ? h("td", { class: "void" }) : h("td", { class: "text" + (line.sign === "=" ? "" : " gone") }, marked(old[line.i], line.gone));
  const right = line.j === null ? h("td", { class: "void" }) : h("td", { class: "text" + (line.sign === "=" ? "" : " new") }, marked(fresh[line.j], line.fresh));
  return [h("tr", {}, number(line.i), left, number(line.j), right)];
}
function unifiedRows(line, old, fresh) {
  const row = (sign, i, j, text, marks, name) =>
    h("tr", { class: name }, number(i), number(j), h("td", { class: "sign" }, sign), h("td", { class: "text" }, marked(text, marks)));
  if (line.sign === "=") return [row(" ", line.i, line.j, old[line.i], [], null)];
  const found = [];
  if (line.i !== null) found.push(row("−", line.i, null, old[line.i], line.gone, "gone"));
  if (line.j !== null) found.push(row("+", null, line.j, fresh[line.j], line.fresh, "new"));
  return found;
}
// In a run of lines that changed, those that are gone stand before those that are new.
function grouped(items, old, fresh) {
  const found = [];
  let gone = [], made = [];
  const flush = () => { found.push(...gone, ...made); gone = []; made = []; };
  for (const line of items) {
    if (line.sign === "=") { flush(); found.push(...unifiedRows(line, old, fresh)); continue; }
    for (const row of unifiedRows(line, old, fresh)) (row.className === "gone" ? gone : made).push(row);
  }
  flush();
  return found;
}
function diffTable(rows, old, fresh, options) {
  const render = (lines) => (options.beside ? lines.flatMap((line) => besideRow(line, old, fresh)) : grouped(lines, old, fresh));
  const rowsOf = [];
  let run = [];
  for (const item of folded(diffLines(rows, old, fresh), options.open)) {
    if (!item.fold) { run.push(item); continue; }
    rowsOf.push(...render(run));
    run = [];
    const fold = h("tr", { class: "fold" }, h("td", { class: "no" }), h("td", { colspan: 3 },
      h("button", { type: "button", onclick: () => fold.replaceWith(...render(item.fold)) }, "⋯ " + plural(item.fold.length, "line that stays", "lines that stay"))));
    rowsOf.push(fold);
  }
  rowsOf.push(...render(run));
  const single = options.single, box = h("div", { class: "diff" + (single ? " single" : "") + (options.beside ? " beside" : "") + (options.wrap ? " wrap" : ""), tabindex: "0", role: "region",
    "aria-label": single ? "The program" : "Difference of two programs" });
  const table = h("table", {});
  if (options.beside) table.append(h("colgroup", {}, h("col", { class: "no" }), h("col", {}), h("col", { class: "no" }), h("col", {})));
  table.append(h("tbody", {}, rowsOf));
  box.append(table);
  return box;
}
function programs(part) {
  const texts = part.stages.map((blob) => shared(blob).map(lineText));
  if (texts.length === 0) return null;
  const kept = texts.length - 1 - (part.refused ? 1 : 0);
  const choices = [];
  if (kept > 0) choices.push({ text: "all steps", rows: () => shared(part.whole), from: 0, to: kept });
  for (let k = 1; k < texts.length; k++) {
    const named = part.primitives[k - 1];
    const refused = part.refused && k === texts.length - 1;
    choices.push({ text: (refused ? "refused: " : k + ". ") + named, rows: () => shared(part.changes[k - 1]), from: k - 1, to: k });
  }
  if (!choices.length) choices.push({ text: "the program", rows: () => [["=", texts[0].length]], from: 0, to: 0 });
  const options = { beside: window.innerWidth > 1100, open: false, wrap: true };
  let chosen = part.refused ? choices[choices.length - 1] : choices[0];
  const place = h("div", {});
  const draw = () => {
    const same = chosen.from !== chosen.to && chosen.rows().every(([sign]) => sign === "=");
    place.replaceChildren(same ? h("p", { class: "hint" }, "This step leaves the program's text as it is.") : "",
      diffTable(chosen.rows(), texts[chosen.from], texts[chosen.to], chosen.from === chosen.to ? { ...options, open: true, beside: false, single: true } : options));
  };
  const pick = h("select", { "aria-label": "What to compare", onchange: () => { chosen = choices[Number(pick.value)]; draw(); } },
    choices.map((choice, k) => h("option", { value: k, selected: choice === chosen }, choice.text)));
  const step = (by) => {
    const next = Number(pick.value) + by;
    if (next >= 0 && next < choices.length) { pick.value = String(next); chosen = choices[next]; draw(); }
  };
  draw();
  return [h("div", { class: "bar" }, pick,
    choices.length > 1 && [h("button", { type: "button", onclick: () => step(-1), "aria-label": "Step before" }, "‹"),
      h("button", { type: "button", onclick: () => step(1), "aria-label": "Step after" }, "›")],
    texts.length > 1 && toggle("side by side", options.beside, (on) => { options.beside = on; draw(); }),
    texts.length > 1 && toggle("whole program", options.open, (on) => { options.open = on; draw(); }),
    toggle("wrap lines", options.wrap, (on) => { options.wrap = on; draw(); })), place];
}
