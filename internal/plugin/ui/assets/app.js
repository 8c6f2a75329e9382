// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// The pages are made on the server. This script fetches the page anew, replaces the parts with data-live that have
// changed, draws curves and sparklines, copies commands, and fetches the rest of long texts. It makes no markup of
// what a model wrote: it inserts what the server has escaped, or sets text.
(function () {
  "use strict";
  const period = 3000, soon = 700;
  const content = document.getElementById("content");
  const pulse = document.getElementById("pulse");
  let tag = "";

  // --- live parts

  async function look() {
    let next = period;
    try {
      const headers = { "X-Fragment": "1" };
      if (tag) headers["If-None-Match"] = tag;
      const answer = await fetch(location.href, { headers, cache: "no-store", redirect: "error" });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag") || "";
        replace(await answer.text());
      } else if (answer.status !== 304) {
        throw new Error(String(answer.status));
      }
      if (answer.headers.get("X-Pending")) next = soon;
      say(true);
    } catch (err) {
      say(false, err);
    }
    window.setTimeout(look, document.hidden ? 5 * period : next);
  }

  function say(live, err) {
    const code = err ? err.message : "";
    pulse.classList.toggle("off", !live);
    pulse.textContent = live ? "live" : code === "401" ? "admitted no longer" : "no answer";
  }

  function replace(html) {
    const parsed = new DOMParser().parseFromString(html, "text/html");
    const now = content.querySelectorAll("[data-live]"), then = parsed.querySelectorAll("[data-live]");
    if (content.dataset.pending && !parsed.querySelector(".spinner")) { // What was awaited has come.
      delete content.dataset.pending;
      content.innerHTML = html;
      begin();
      return;
    }
    for (const part of then) {
      const old = Array.from(now).find((e) => e.id === part.id);
      if (old && served.get(old.id) !== part.innerHTML && !busy(old)) {
        keep(old, () => { old.innerHTML = part.innerHTML; });
        served.set(old.id, part.innerHTML);
      }
    }
    reach();
    sparks();
    refresh();
  }

  const served = new Map(); // what the server last sent of a part, before sparklines were inserted

  // busy says that a person selects text in a part, which must not vanish.
  function busy(part) {
    const chosen = document.getSelection();
    return chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode);
  }

  // keep replaces a part and restores what a person did there: focus, ticks and open details.
  function keep(part, change) {
    const focus = part.contains(document.activeElement) ? document.activeElement : null;
    const name = focus && (focus.id ? "#" + CSS.escape(focus.id)
      : focus.getAttribute("href") ? 'a[href="' + CSS.escape(focus.getAttribute("href")) + '"]' : "");
    const ticked = Array.from(part.querySelectorAll("input:checked"), (e) => e.id);
    const open = Array.from(part.querySelectorAll("details[open]"), (e) => e.id);
    change();
    for (const id of ticked) { const e = id && document.getElementById(id); if (e) e.checked = true; }
    for (const id of open) { const e = id && document.getElementById(id); if (e) e.open = true; }
    if (name) { const e = part.querySelector(name); if (e) e.focus({ preventScroll: true }); }
  }

  // --- sparklines of the rows that are seen

  const drawn = new Map(); // the sparklines of a row, by its key
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "100px" });

  function sparks() {
    for (const slot of content.querySelectorAll("[data-spark]")) {
      const known = drawn.get(slot.dataset.spark);
      if (known) fill(slot, known);
      if (!known || known.key !== slot.dataset.key) seen.observe(slot);
    }
  }

  function fill(slot, known) {
    const part = known.parts[Number(slot.dataset.index)];
    if (part !== undefined && slot.innerHTML !== part) slot.innerHTML = part;
  }

  let asking = 0;
  const queue = [];

  function draw(slot) {
    seen.unobserve(slot);
    const source = slot.dataset.spark, key = slot.dataset.key, known = drawn.get(source);
    if (known && known.key === key) { fill(slot, known); return; }
    drawn.set(source, { key, parts: known ? known.parts : [] });
    queue.push({ source, key });
    pump();
  }

  function pump() {
    while (asking < 4 && queue.length) {
      const { source, key } = queue.shift();
      asking++;
      fetch(source).then((answer) => answer.ok ? answer.text() : "").then((html) => {
        const parsed = new DOMParser().parseFromString(html, "text/html");
        const parts = Array.from(parsed.body.children, (e) => e.innerHTML);
        drawn.set(source, { key, parts });
        for (const slot of content.querySelectorAll("[data-spark]")) {
          if (slot.dataset.spark === source) fill(slot, drawn.get(source));
        }
      }).catch(() => drawn.delete(source)).finally(() => { asking--; pump(); });
    }
  }

  // --- curves

  const plots = new Map(); // by the element of the chart
  const letters = "abcdefghijkl";
  const whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000]; // There is no half step.
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (v) => v === null || v === undefined ? "" : Number(v.toPrecision(4)).toString();

  async function chart(figure) {
    const plot = figure.querySelector(".plot");
    try {
      const answer = await fetch(figure.dataset.chart);
      if (!answer.ok) throw new Error(await answer.text());
      const text = await answer.text(), known = plots.get(figure);
      if (known && known.text === text) return;
      if (known && known.plot) known.plot.destroy();
      plot.textContent = "";
      plots.set(figure, { text, plot: make(figure, plot, JSON.parse(text)) });
    } catch (err) {
      if (!plots.has(figure)) nothing(plot, err.message);
    }
  }

  function nothing(plot, text) {
    plot.classList.add("empty-plot");
    plot.textContent = text;
  }

  function make(figure, plot, data) {
    if (!data.x.length) { nothing(plot, "no values yet"); return null; }
    plot.classList.remove("empty-plot");
    const many = figure.dataset.many === "true", log = figure.dataset.log === "true";
    const positive = (v) => log && !(v > 0) ? null : v;
    const lines = data.lines.map((l) => l.y.map(positive));
    const sole = data.x.length === 1;
    const series = [{}].concat(data.lines.map((l, i) => {
      const main = l.kind === "main", stroke = many ? color("--" + letters[i]) : color("--a");
      return { stroke: main ? stroke : l.kind === "raw" ? color("--raw") : "transparent", width: main ? 1.6 : 1.2,
        spanGaps: true, points: { show: sole || (main && data.x.length < 25), size: 4 } };
    }));
    const kinds = data.lines.map((l) => l.kind);
    const low = kinds.indexOf("low") + 1, high = kinds.indexOf("high") + 1;
    const axis = { stroke: color("--quiet"), font: "11px system-ui, sans-serif", grid: { stroke: color("--grid"), width: 1 },
      ticks: { stroke: color("--grid"), width: 1 } };
    return new uPlot({
      width: plot.clientWidth, height: plot.clientHeight, legend: { show: false },
      cursor: { sync: { key: "curves" }, y: false, drag: { x: true, y: false } },
      scales: { x: { time: data.time }, y: log ? { distr: 3 } : {} },
      axes: [Object.assign({ size: 26 }, data.time ? {} : { incrs: whole }, axis), Object.assign({ size: 60, values: (u, all) => all.map(number) }, axis)],
      series, bands: low && high ? [{ series: [high, low], fill: color("--band") }] : [],
      hooks: { setCursor: [(u) => read(figure, u, data, lines, kinds, many)], draw: [(u) => mark(u, data.marks, "--warn", [3, 3]), (u) => mark(u, data.forks || [], "--d", [1, 3])] },
    }, [data.x].concat(lines), plot);
  }

  // mark draws where attempts began, or other runs were forked.
  function mark(u, marks, name, dashes) {
    const ctx = u.ctx;
    ctx.save();
    ctx.strokeStyle = color(name);
    ctx.setLineDash(dashes);
    for (const x of marks) {
      const at = Math.round(u.valToPos(x, "x", true)) + .5;
      if (at < u.bbox.left || at > u.bbox.left + u.bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(at, u.bbox.top);
      ctx.lineTo(at, u.bbox.top + u.bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  // read writes the values at the cursor.
  function read(figure, u, data, lines, kinds, many) {
    const at = u.cursor.idx === null || u.cursor.idx === undefined ? data.x.length - 1 : u.cursor.idx;
    const where = data.time ? new Date(data.x[at] * 1000).toLocaleString() : "step " + data.x[at];
    const out = figure.querySelector(".readout");
    if (many) {
      out.textContent = where;
      const readings = document.querySelectorAll(".legend .reading");
      lines.forEach((y, i) => { if (readings[i]) readings[i].textContent = number(y[at]); });
      return;
    }
    const value = (kind) => number((lines[kinds.indexOf(kind)] || [])[at]);
    let text = where + "  " + value("main");
    if (kinds.includes("low") && value("low")) text += "  (" + value("low") + " to " + value("high") + ")";
    out.textContent = text;
  }

  let refreshed = 0;
  function refresh() {
    const now = Date.now();
    if (now - refreshed < 9000) return;
    refreshed = now;
    for (const figure of content.querySelectorAll("[data-chart]")) chart(figure);
  }

  function redraw() {
    for (const figure of content.querySelectorAll("[data-chart]")) {
      const known = plots.get(figure);
      if (!known || !known.plot) continue;
      const plot = figure.querySelector(".plot");
      known.plot.destroy();
      plot.textContent = "";
      known.plot = make(figure, plot, JSON.parse(known.text));
    }
  }

  // --- the spec that is edited

  const editor = document.querySelector("[data-check]");

  // check has the API server check what is written, without a change.
  async function check() {
    const text = editor.elements.spec, asked = text.value;
    try {
      const body = new URLSearchParams(new FormData(editor));
      body.set("step", "check");
      const answer = await fetch(editor.action, { method: "POST", body, headers: { "X-Fragment": "1" } });
      const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (asked !== text.value) return;
      for (const id of ["causes", "causes-of-all"]) {
        const now = document.getElementById(id), then = parsed.getElementById(id);
        now.innerHTML = then ? then.innerHTML : "";
      }
      text.setAttribute("aria-invalid", String(parsed.querySelector("#causes li") !== null));
      place();
    } catch { /* The button checks as well, and says what is wrong. */ }
  }

  // place puts what is wrong with a line beside it.
  function place() {
    const text = editor.elements.spec, style = getComputedStyle(text);
    const wide = matchMedia("(min-width: 961px)").matches;
    let free = 0;
    for (const item of editor.querySelectorAll("#causes li")) {
      const line = Math.max(1, Number(item.dataset.line));
      const top = Math.max(free, parseFloat(style.paddingTop) + (line - 1) * parseFloat(style.lineHeight));
      item.style.top = wide ? top + "px" : "";
      free = top + item.offsetHeight + 4;
    }
  }

  function lineOf(text, line) {
    let from = 0;
    for (let n = 1; n < line; n++) from = text.indexOf("\n", from) + 1;
    const to = text.indexOf("\n", from);
    return [from, to < 0 ? text.length : to];
  }

  if (editor) {
    let waiting = 0;
    editor.elements.spec.addEventListener("input", (event) => {
      event.target.rows = event.target.value.split("\n").length + 1;
      window.clearTimeout(waiting);
      waiting = window.setTimeout(check, 500);
    });
    editor.addEventListener("click", (event) => {
      const line = Number(event.target.dataset.goto);
      if (!line) return;
      editor.elements.spec.focus();
      editor.elements.spec.setSelectionRange(...lineOf(editor.elements.spec.value, line));
    });
    place();
  }

  // --- clicks and keys

  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      let text = "copied";
      try { await navigator.clipboard.writeText(copy.dataset.copy); } catch { text = "not copied"; }
      copy.textContent = text;
      window.setTimeout(() => { copy.textContent = "copy"; }, 1500);
      return;
    }
    const more = event.target.closest("[data-more]");
    if (!more || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      const answer = await fetch(more.href);
      if (!answer.ok) throw new Error(await answer.text());
      more.previousElementSibling.append(await answer.text());
      const next = answer.headers.get("X-Next");
      if (next) { more.href = next; more.textContent = answer.headers.get("X-Left") + " more bytes"; } else more.remove();
    } catch (err) {
      more.textContent = err.message;
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); }
    }
    const links = Array.from(content.querySelectorAll("td.name a, .groups li > a"));
    const step = { j: 1, k: -1 }[event.key];
    if (step && links.length) {
      const at = links.indexOf(document.activeElement);
      links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + step))].focus();
    }
    const other = { n: "next", p: "prev" }[event.key];
    const link = other && content.querySelector('a[rel="' + other + '"]');
    if (link) link.click();
  });

  for (const form of document.querySelectorAll("form[method=get]")) { // Empty fields stay out of the address.
    form.addEventListener("submit", () => {
      for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
      window.setTimeout(() => { for (const field of form.elements) field.disabled = false; });
    });
  }

  // reach lets keys scroll what is wider than its place, and nothing else.
  function reach() {
    for (const part of content.querySelectorAll(".scroll, .beside, pre.yaml")) {
      const wide = part.scrollWidth > part.clientWidth;
      if (wide === part.hasAttribute("tabindex")) continue;
      if (!wide) { for (const name of ["tabindex", "role", "aria-label"]) part.removeAttribute(name); continue; }
      const title = part.closest("section, .group, main").querySelector("h2, h1");
      part.tabIndex = 0;
      part.setAttribute("role", "region");
      part.setAttribute("aria-label", title ? title.textContent.trim() : document.title);
    }
  }

  function begin() {
    reach();
    for (const part of content.querySelectorAll("[data-live]")) served.set(part.id, part.innerHTML);
    sparks();
    for (const figure of content.querySelectorAll("[data-chart]")) chart(figure);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let resizing = 0;
  window.addEventListener("resize", () => {
    window.clearTimeout(resizing);
    resizing = window.setTimeout(() => { reach(); redraw(); if (editor) place(); }, 150);
  });
  begin();
  say(true);
  if (!editor) window.setTimeout(look, content.dataset.pending ? soon : period);
})();
