"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const table = document.querySelector("table.runs");
const body = table.tBodies[0];
const lines = [...body.rows].map((element, number) => ({ element, row: data.rows[number] }));
const COLOURS = ["#0b7476", "#c2410c", "#44546a", "#8a3ffc", "#b28600", "#1d6fd1", "#a01d5b", "#4d7c0f"];

// Sorting: a click on a column sorts by it, a second click reverses the order. Missing values come last.
table.tHead.addEventListener("click", (event) => {
  const head = event.target.closest("th");
  if (!head) return;
  const name = head.dataset.name;
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = (a, b) => {
    const [left, right] = [a.row[name], b.row[name]];
    if (left == null || right == null) return (left == null) - (right == null);
    const numbers = typeof left === "number" && typeof right === "number";
    const sign = numbers ? left - right : String(left).localeCompare(String(right), "en", { numeric: true });
    return down ? -sign : sign;
  };
  lines.sort(order);
  body.append(...lines.map((line) => line.element));
});

// Filtering: a row must satisfy all conditions and contain all words.
const holds = {
  "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "!=": (a, b) => a !== b,
  "=": (a, b) => a === b, "<": (a, b) => a < b, ">": (a, b) => a > b,
};
function matches(row, condition) {
  const parts = condition.match(/^(.+?)(<=|>=|!=|=|<|>)(.+)$/);
  if (parts && data.columns.includes(parts[1])) {
    const cell = row[parts[1]];
    if (cell == null) return false;
    const number = Number(parts[3]);
    if (typeof cell === "number" && !Number.isNaN(number)) return holds[parts[2]](cell, number);
    const word = parts[3].toLowerCase();
    if (typeof cell === "boolean") return holds[parts[2]](cell ? "yes" : "no", { true: "yes", false: "no" }[word] || word);
    return holds[parts[2]](String(cell).toLowerCase(), word);
  }
  return Object.values(row).some((cell) => cell != null && String(cell).toLowerCase().includes(condition.toLowerCase()));
}
let visible = data.rows;
function filter() {
  const words = at("filter").value.split(/\s+/).filter(Boolean);
  visible = [];
  for (const line of lines) {
    const shown = words.every((word) => matches(line.row, word));
    line.element.hidden = !shown;
    if (shown) visible.push(line.row);
  }
  at("count").textContent = `${visible.length} of ${lines.length}`;
  draw();
}
at("filter").addEventListener("input", filter);
at("all").addEventListener("change", () => table.classList.toggle("all", at("all").checked));

// Plots.
const SVG = "http://www.w3.org/2000/svg";
function add(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}
function ticks(low, high, count) {
  if (low === high) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough);
  const values = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) values.push(value);
  return values;
}
const short = (value) => String(Number(value.toPrecision(4)));
function scale(values, from, to, logarithmic) {
  const inside = logarithmic ? values.map(Math.log10) : values;
  let [low, high] = [Math.min(...inside), Math.max(...inside)];
  const margin = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * 0.05;
  [low, high] = [low - margin, high + margin];
  const position = (value) => from + ((logarithmic ? Math.log10(value) : value) - low) / (high - low) * (to - from);
  let marks = ticks(low, high, 6);
  if (logarithmic) {
    const powers = marks.filter((mark) => Math.abs(mark - Math.round(mark)) < 1e-9);
    const distinct = [...new Set(values)].sort((a, b) => a - b);
    marks = powers.length >= 2 && distinct.length > 10 ? powers.map((mark) => 10 ** Math.round(mark)) : distinct;
  }
  return { position, marks: marks.map((mark) => [position(mark), short(mark)]) };
}
function categories(values, from, to) {
  const names = [...new Set(values.map(String))];
  const position = (value) => from + (names.indexOf(String(value)) + 0.5) / names.length * (to - from);
  const every = Math.ceil(names.length / 12);
  return { position, marks: names.map((name) => [position(name), name.length > 18 ? `${name.slice(0, 17)}…` : name]).filter((_, i) => i % every === 0) };
}
function draw() {
  if (!at("plot")) return;
  const [yName, xName, colourName] = [at("y").value, at("x").value, at("colour").value];
  const svg = at("plot");
  svg.replaceChildren();
  at("legend").replaceChildren();
  const rows = visible.filter((row) => row.state === "done" && typeof row[yName] === "number" && row[xName] != null);
  if (!rows.length) {
    add(svg, "text", { x: 500, y: 220, "text-anchor": "middle" }, "No finished run has values of both columns.");
    return;
  }
  const numeric = rows.every((row) => typeof row[xName] === "number");
  const logarithmic = at("log").checked && numeric && rows.every((row) => row[xName] > 0);
  const [left, right, top, bottom] = [80, 985, 15, 385];
  const y = scale(rows.map((row) => row[yName]), bottom, top, false);
  const across = rows.map((row) => row[xName]);
  const x = numeric ? scale(across, left, right, logarithmic) : categories(across, left, right);
  for (const [position, name] of y.marks) {
    add(svg, "line", { class: "grid", x1: left, x2: right, y1: position, y2: position });
    add(svg, "text", { x: left - 8, y: position + 4, "text-anchor": "end" }, name);
  }
  for (const [position, name] of x.marks) add(svg, "text", { x: position, y: bottom + 20, "text-anchor": "middle" }, name);
  add(svg, "line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
  add(svg, "line", { class: "axis", x1: left, x2: left, y1: top, y2: bottom });
  add(svg, "text", { x: (left + right) / 2, y: 428, "text-anchor": "middle" }, xName);
  add(svg, "text", { x: 16, y: (top + bottom) / 2, transform: `rotate(-90 16 ${(top + bottom) / 2})`, "text-anchor": "middle" }, yName);
  const groups = [...new Set(rows.map((row) => (colourName ? String(row[colourName]) : "")))];
  groups.forEach((group, number) => {
    const colour = COLOURS[number % COLOURS.length];
    const members = rows.filter((row) => !colourName || String(row[colourName]) === group);
    const means = new Map();
    for (const row of members) {
      const sums = means.get(row[xName]) || [0, 0];
      means.set(row[xName], [sums[0] + row[yName], sums[1] + 1]);
    }
    const levels = data.settings.includes(xName) && xName !== "seed";
    if (levels && !numeric) {
      for (const [value, [sum, count]] of means) {
        const [middle, height] = [x.position(value), y.position(sum / count).toFixed(1)];
        add(svg, "path", { class: "mean", d: `M${(middle - 22).toFixed(1)} ${height}h44`, stroke: colour });
      }
    } else if (levels && means.size > 1) {
      const path = [...means].sort((a, b) => x.position(a[0]) - x.position(b[0]))
        .map(([value, [sum, count]], i) => `${i ? "L" : "M"}${x.position(value).toFixed(1)} ${y.position(sum / count).toFixed(1)}`);
      add(svg, "path", { class: "mean", d: path.join(""), stroke: colour });
    }
    for (const row of members) {
      const circle = add(svg, "circle", { cx: x.position(row[xName]).toFixed(1), cy: y.position(row[yName]).toFixed(1), r: 5, fill: colour });
      add(circle, "title", {}, `${row.run}: ${yName} ${short(row[yName])}`);
    }
    if (colourName && number < 24) {
      const entry = document.createElement("span");
      const dot = document.createElement("i");
      dot.style.background = colour;
      entry.append(dot, group === "null" || group === "undefined" ? `without ${colourName}` : `${colourName} ${group}`);
      at("legend").append(entry);
    }
  });
}
function aggregate() {
  if (!at("aggregates")) return;
  at("chosen").textContent = at("y").value;
  const made = data.aggregates.filter((row) => row.column === at("y").value).map((row) => {
    const line = document.createElement("tr");
    ["settings", "n", "mean", "sd", "t", "bootstrap", "lowest", "median", "highest"].forEach((name, number) => {
      const cell = document.createElement(number ? "td" : "th");
      if (number === 0 || number > 5) cell.className = "left";
      cell.textContent = row[name];
      line.append(cell);
    });
    return line;
  });
  at("aggregates").replaceChildren(...made);
}
if (at("plot")) {
  for (const name of ["y", "x", "colour", "log"]) at(name).addEventListener("change", draw);
  at("y").addEventListener("change", aggregate);
  const across = [...new Set(data.rows.map((row) => row[at("x").value]))].filter((value) => typeof value === "number" && value > 0);
  at("log").checked = across.length > 2 && Math.max(...across) / Math.min(...across) >= 16;
  draw();
}
