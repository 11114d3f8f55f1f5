// Curves of the fleet, and a page for each arm, from the numbers in this file.
"use strict";
const fleet = JSON.parse(document.getElementById("data").textContent);
const byName = new Map(fleet.arms.map((arm) => [arm.name, arm]));
const SVG = "http://www.w3.org/2000/svg";

function node(kind, attributes, parent, words) {
  const made = kind === "svg" || parent instanceof SVGElement
    ? document.createElementNS(SVG, kind) : document.createElement(kind);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  if (words !== undefined) made.textContent = words;
  if (parent) parent.appendChild(made);
  return made;
}

// y and its half-width were written as whole numbers of steps above the lowest value.
function values(series) {
  return series.y.map((y, i) => [series.low + y * series.step, series.half[i] * series.step]);
}

function date(t) { return new Date(t * 1000).toISOString().slice(0, 10); }

// The ends of a scale, with two digits of their difference.
function ends(low, high) {
  const decimals = Math.max(1 - Math.floor(Math.log10(high - low)), 0);
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (decimals > 5 || size >= 1e5) return [low, high].map((x) => x.toExponential(1));
  return [low, high].map((x) => x.toFixed(decimals));
}

// A value to two digits of its half-width, as 3.52 ± 0.11.
function withInterval(value, half) {
  const decimals = half > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(half)), 0), 9) : 4;
  return `${value.toFixed(decimals)} \u00b1 ${half.toFixed(decimals)}`;
}

function valueAt(arm, series, k) {
  const [y, half] = values(series)[k];
  const time = series.time || arm.time;
  return `${date(time[k])}: ${withInterval(y, half)} ${fleet.kinds[series.kind].unit}`.trimEnd();
}

function draw(arm, series, width, height, labels) {
  // On the left there is space for numbers like -0.00123.
  const box = labels ? { l: 60, r: 8, t: 8, b: 18 } : { l: 52, r: 1, t: 3, b: 3 };
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": series.title });
  const found = values(series), t = series.time || arm.time;
  let low = Infinity, high = -Infinity;
  for (const [y, half] of found) { low = Math.min(low, y - half); high = Math.max(high, y + half); }
  if (series.zero && !labels) { low = Math.min(low, 0); high = Math.max(high, 0); }
  if (!(high > low)) { high = low + 1; }
  const [lowest, highest] = ends(low, high);
  const x = (k) => box.l + (width - box.l - box.r) * (t[k] - t[0]) / Math.max(t[t.length - 1] - t[0], 1);
  const y = (v) => height - box.b - (height - box.t - box.b) * (v - low) / (high - low);
  const at = (k, v) => `${x(k).toFixed(1)} ${y(v).toFixed(1)}`;
  const group = node("g", series.at === undefined ? {} : { class: "changed" }, svg);
  if (low < 0 && high > 0) node("line", { class: "zero", x1: box.l, x2: width - box.r, y1: y(0), y2: y(0) }, group);
  const upper = found.map(([v, h], k) => at(k, v + h)), lower = found.map(([v, h], k) => at(k, v - h)).reverse();
  node("path", { class: "band", d: `M${upper.concat(lower).join("L")}Z` }, group);
  node("path", { class: "line", d: `M${found.map(([v], k) => at(k, v)).join("L")}` }, group);
  if (series.at > t[0]) {
    const since = Math.max(0, Math.min(1, (series.at - t[0]) / Math.max(t[t.length - 1] - t[0], 1)));
    const where = box.l + (width - box.l - box.r) * since;
    node("line", { class: "mark", x1: where, x2: where, y1: box.t, y2: height - box.b }, group);
  }
  if (!labels) {
    node("text", { class: "scale", x: box.l - 3, y: box.t + 7, "text-anchor": "end" }, svg, highest);
    node("text", { class: "scale", x: box.l - 3, y: height - box.b, "text-anchor": "end" }, svg, lowest);
    node("title", {}, svg, `${series.title}, last ${valueAt(arm, series, found.length - 1)}`);
  }
  if (labels) {
    node("text", { class: "axis", x: box.l - 4, y: box.t + 8, "text-anchor": "end" }, svg, highest);
    node("text", { class: "axis", x: box.l - 4, y: height - box.b, "text-anchor": "end" }, svg, lowest);
    node("text", { class: "axis", x: box.l, y: height - 4 }, svg, date(t[0]));
    node("text", { class: "axis", x: width - box.r, y: height - 4, "text-anchor": "end" }, svg, date(t[t.length - 1]));
    if (found.length <= 60) found.forEach(([v], k) => node("circle", { class: "dot", cx: x(k), cy: y(v), r: 1.7 }, group));
  }
  if (labels) showValues(svg, arm, series, { x, y, found, width });
  return svg;
}

// The log that is nearest to the pointer, with its date and value.
function showValues(svg, arm, series, plot) {
  const mark = node("circle", { class: "near", r: 3, visibility: "hidden" }, svg);
  const words = node("text", { class: "value", x: plot.width - 8, y: 10, "text-anchor": "end" }, svg, "");
  svg.addEventListener("pointermove", (event) => {
    const wanted = (event.clientX - svg.getBoundingClientRect().left) * plot.width / svg.clientWidth;
    let best = 0;
    plot.found.forEach((_, k) => { if (Math.abs(plot.x(k) - wanted) < Math.abs(plot.x(best) - wanted)) best = k; });
    mark.setAttribute("cx", plot.x(best));
    mark.setAttribute("cy", plot.y(plot.found[best][0]));
    mark.setAttribute("visibility", "visible");
    words.textContent = valueAt(arm, series, best);
  });
  svg.addEventListener("pointerleave", () => {
    mark.setAttribute("visibility", "hidden");
    words.textContent = "";
  });
}

function sparks() {
  for (const cell of document.querySelectorAll("td.spark")) {
    const arm = byName.get(cell.dataset.arm);
    cell.appendChild(draw(arm, arm.series[Number(cell.dataset.series)], 128, 34, false));
  }
}

function page(arm) {
  const place = document.getElementById("arm");
  place.replaceChildren();
  node("p", {}, place).appendChild(node("a", { href: "#" }, null, "\u2190 all arms"));
  node("h1", {}, place, arm.name);
  const answer = node("div", { class: "answer" }, place);
  const words = arm.words.length ? arm.words : ["Nothing has changed beyond noise."];
  words.forEach((each) => node("p", {}, answer, each));
  node("p", { class: "note" }, place, arm.facts);
  const kinds = [...new Set(arm.series.map((each) => each.kind))];
  for (const kind of kinds) {
    node("h2", {}, place, fleet.kinds[kind].words);
    const panels = node("div", { class: "panels c4" }, place);
    for (const series of arm.series.filter((each) => each.kind === kind)) {
      const panel = node("div", { class: "panel" }, panels);
      node("h3", {}, panel, series.title);
      panel.appendChild(draw(arm, series, 300, 120, true));
    }
  }
}

function route() {
  const name = decodeURIComponent(location.hash.replace(/^#arm=/, ""));
  const arm = location.hash.startsWith("#arm=") ? byName.get(name) : undefined;
  if (arm) page(arm);
  document.getElementById("fleet").hidden = Boolean(arm);
  document.getElementById("arm").hidden = !arm;
  window.scrollTo(0, 0);
}

sparks();
route();
window.addEventListener("hashchange", route);
document.body.dataset.done = "";
