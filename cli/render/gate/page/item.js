// One item: what is wrong first, then the steps, the programs, the layouts, what padding holds, what is assumed.
const placeText = (place) => place.path + ":" + place.line + ":" + place.column;
function sourceLine(place) {
  if (!place.text || !place.text.trim()) return null;
  const start = Math.max(0, place.column - 1);
  const end = place.end_line === place.line ? Math.max(start + 1, place.end_column - 1) : place.text.length;
  return h("pre", { class: "source" }, h("span", { class: "gutter" }, place.line + " │ "), place.text.slice(0, start), h("b", {}, place.text.slice(start, end)), place.text.slice(end));
}
// Values as text; many equal ones are said once.
function valueText(value) {
  if (Array.isArray(value)) {
    if (value.length > 4 && value.every((one) => one === value[0])) return "[" + value.length + " × " + valueText(value[0]) + "]";
    return "[" + value.map(valueText).join(", ") + "]";
  }
  if (value !== null && typeof value === "object") return Object.entries(value).map(([name, one]) => name + ": " + valueText(one)).join(", ");
  return String(value);
}
const LONG = 400;
function folding(text) {
  return text.length <= LONG ? text : h("details", {}, h("summary", {}, text.slice(0, 80) + "…"), text);
}
// What stands between backticks is code.
function coded(text) {
  const parts = text.split("`");
  return parts.length % 2 === 0 ? text : parts.map((part, k) => (k % 2 ? h("code", {}, part) : part));
}
function example(finding) {
  if (finding.drawing.length) return h("pre", { class: "drawing" }, finding.drawing.join("\n"));
  if (!finding.counterexample) return null;
  return h("div", { class: "wide" }, h("table", {}, h("tbody", {}, Object.entries(finding.counterexample).map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "mono" }, folding(valueText(value))))))));
}
function messageOf(text) {
  const [first, ...more] = text.split("\n");
  return [h("p", { class: "message" }, coded(first)), more.some((line) => line.trim()) && h("pre", { class: "more" }, more.join("\n"))];
}
function findingCard(finding) {
  const status = finding.status || "error";
  return h("section", { class: "finding " + status },
    h("p", {}, badge(status), " ", codeLink(finding.code), " ", finding.fate !== "fails" && h("span", { class: "badge fate" }, { allowed: "allowed: what is unknown fails no run", ignored: "ignored: its code is not selected", known: "known: in the baseline" }[finding.fate] || finding.fate)),
    messageOf(finding.message),
    finding.place && [h("p", { class: "where" }, placeText(finding.place)), sourceLine(finding.place)],
    finding.related.map((place) => [h("p", { class: "where" }, placeText(place) + ": ", coded(place.message)), sourceLine(place)]),
    example(finding),
    finding.help && h("p", { class: "help" }, coded(finding.help)),
    finding.drawing.length > 0 && finding.counterexample && h("details", {}, h("summary", {}, "the counterexample as data"), h("pre", {}, JSON.stringify(finding.counterexample, null, 1))),
    finding.obligation && h("p", { class: "hint" }, "obligation ", h("code", {}, finding.obligation)));
}
function worstOf(obligations) {
  return WORST.find((word) => obligations.some((one) => one.status === word)) || "proved";
}
function argumentText(values) {
  return Object.entries(values).map(([name, value]) => name + " = " + valueText(value)).join(", ");
}
function stepRow([blob, seconds], k) {
  const step = shared(blob), word = worstOf(step.obligations), licences = [...new Set(step.obligations.flatMap((one) => one.strictness))].sort();
  const details = h("details", { class: "step", open: word !== "proved" },
    h("summary", {}, h("span", {}, k + 1 + ". ", h("b", {}, step.primitive)), badge(word), h("span", { class: "arguments mono" }, argumentText(step.arguments)),
      h("span", { class: "hint right" }, plural(step.obligations.length, "obligation", "obligations") + (licences.length ? ", with " + licences.join(" ") : word === "proved" ? ", bit for bit" : "") + (seconds ? ", " + duration(seconds) : ""))));
  const fill = () => { if (details.open && details.children.length === 1) details.append(obligationTable(step.obligations)); };
  details.addEventListener("toggle", fill);
  fill();
  return details;
}
// Equal obligations of many accesses are said once.
function obligationTable(obligations) {
  const seen = new Map();
  for (const one of obligations) {
    const key = JSON.stringify([one.status, one.claim, one.engine, one.strictness, one.reason]);
    if (seen.has(key)) seen.get(key).times += 1; else seen.set(key, { one, times: 1 });
  }
  const order = [...seen.values()].sort((a, b) => WORST.indexOf(a.one.status) - WORST.indexOf(b.one.status));
  return h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, ["verdict", "claim", "engine", "strictness", "reason"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, order.map(({ one, times }) => h("tr", {}, h("td", {}, badge(one.status)), h("td", {}, one.claim, times > 1 && h("span", { class: "hint" }, " × " + comma(times))),
      h("td", { class: "tight" }, one.engine), h("td", {}, one.strictness.length ? one.strictness.join(" ") : one.status === "proved" ? "bit for bit" : ""), h("td", { class: "lines" }, one.reason || ""))))));
}
function section(title, note, ...content) {
  const kept = content.flat().filter(Boolean);
  return kept.length ? h("section", {}, h("h2", {}, title), note && h("p", { class: "hint" }, note), kept) : null;
}
function contractTable(contracts) {
  if (!contracts.length) return null;
  const holds = (one) => one.cells === 0 ? "there is no padding" : { value: h("code", {}, one.holds), undef: "anything: it may be read and written", forbidden: "nothing is promised, and nobody may touch it" }[one.padding];
  return h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "buffer"), h("th", { scope: "col" }, "map"), h("th", { scope: "col" }, "padding holds"), h("th", { scope: "col", class: "number" }, "cells"))),
    h("tbody", {}, contracts.map((one) => h("tr", {}, h("td", {}, one.buffer, one.refused && [" ", h("span", { class: "badge refuted" }, "refused")]), h("td", {}, h("code", {}, one.index_map)), h("td", {}, holds(one)), h("td", { class: "number" }, one.cells === null ? "" : comma(one.cells)))))));
}
const WHOSE = {
  program: "the program states it: its author answers for it",
  caller: "it was given with the question, and is not checked",
  call: "checked at every call of a built kernel",
};
function whoseText(one, primitives) {
  const primitive = one.since > 0 ? primitives[one.since - 1] : null;
  if (!primitive) return WHOSE[one.whose] || one.whose;
  const filling = primitive.endsWith("transform_layout") ? ": whoever fills the buffer answers for it, as a built kernel does" : "";
  return "the program states it since step " + one.since + " (" + primitive + ")" + filling;
}
function assumptionTable(assumptions, primitives) {
  if (!assumptions.length) return null;
  return h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, ["assumption", "whose"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, assumptions.map((one) => h("tr", {}, h("td", {}, h("code", {}, one.text)), h("td", {}, whoseText(one, primitives)))))));
}
function partSections(part, alone) {
  const of = (title) => (alone ? title : title + ": " + part.title);
  return [
    section(of("Programs"), "", programs(part)),
    section(of("Layouts"), "", part.layouts.map((blob) => layoutCard(shared(blob)))),
    section(of("What padding holds"), "", contractTable(shared(part.contracts))),
    section(of("Assumptions"), "What nobody proves, and who answers for it.", assumptionTable(shared(part.assumptions), part.primitives)),
  ];
}
function itemView(row) {
  const item = body(row);
  const facts = [item.kind, item.program && item.program !== item.name ? item.program : "", item.place ? placeText(item.place) : "",
    item.seconds ? duration(item.seconds) : "", item.cached ? (item.verdict === "proved" ? "proved" : "judged") + " in an earlier run" : "", item.certificate ? "certificate: " + item.certificate : ""];
  const fails = shown.filter((one) => one.fails);
  const next = fails.find((one) => shown.indexOf(one) > shown.indexOf(row)) || fails[0];
  const sections = [
    section("Steps", "", item.steps.map(stepRow)),
    ...(item.parts || []).flatMap((part) => partSections(part, item.parts.length === 1)),
  ].filter(Boolean);
  const jump = sections.length > 1 && h("div", { class: "jump", role: "group", "aria-label": "Go to" }, sections.map((one) =>
    h("button", { type: "button", onclick: () => one.scrollIntoView() }, one.firstChild.textContent)));
  return [
    h("div", { class: "title" }, h("button", { type: "button", class: "back", onclick: close }, "‹ all items"), h("h2", {}, item.name), badge(row.verdict),
      h("div", { class: "turn" }, h("button", { type: "button", onclick: () => move(-1), title: "item before (k)" }, "‹ previous"), h("button", { type: "button", onclick: () => move(1), title: "item after (j)" }, "next ›"),
        next && next !== row && h("button", { type: "button", onclick: () => open(next) }, "next failing ›"))),
    h("p", { class: "meta" }, facts.filter(Boolean).join(" · ")),
    item.findings.map(findingCard),
    item.notes.length > 0 && h("ul", {}, item.notes.map((note) => h("li", {}, note))),
    jump,
    sections,
    item.left_out && h("p", { class: "hint" }, "The programs and layouts of this item are left out, since the page is large already: a report of this item alone has them."),
  ];
}
