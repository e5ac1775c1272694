"use strict";
// The labels over time: a row per class, a bar per stretch of equal labels, how sure they are below.
(() => {
  const data = page.dataOf("timeline-data");
  if (!data) return;
  const { byId, make, percent } = page;
  const SVG = "http://www.w3.org/2000/svg";
  const LANE = 22, BAR = 10, TRUE = 4, CURVE = 56, AXIS = 24, RIGHT = 10, LETTER = 7.5, LEAST = 0.7, TICK = 110;
  const holder = byId("timeline"), status = byId("timeline-status"), chooser = byId("timeline-recording");
  const explained = new Set(data.explained);
  let recording = data.recordings[0], scale = null, chosen = null;

  const draw = (tag, attributes, text) => {
    const element = document.createElementNS(SVG, tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const shortened = (name, letters) => (name.length > letters ? `${name.slice(0, letters - 1).trimEnd()}…` : name);
  const isWrong = (i) => data.truth && recording.truth[i] >= 0 && recording.truth[i] !== recording.label[i];

  const isDated = data.kind === "date" || data.kind === "time of day";
  const time = (value) => {
    const iso = isDated ? new Date(value).toISOString().replace("T", " ").replace(/(\.000)?Z$/, "") : "";
    if (isDated) return data.kind === "date" ? iso : iso.slice(11);
    return Number(value.toPrecision(10)).toLocaleString("en");
  };

  // Stretches of equal `of(i)` without a gap as [value, from, to] in pixels; those too short to be seen are joined.
  const stretches = (of) => {
    const found = [];
    recording.rows.forEach((_, i) => {
      const value = of(i), last = found[found.length - 1], from = scale(recording.start[i]), to = scale(recording.end[i]);
      if (last && last[0] === value && from - last[2] < LEAST) last[2] = Math.max(last[2], to);
      else found.push([value, from, to]);
    });
    return found;
  };

  const bars = (of, y, height, kind) => stretches(of).filter(([value]) => value !== null).map(([value, from, to]) =>
    draw("rect", { x: from.toFixed(1), y: y(value), width: Math.max(to - from, LEAST).toFixed(1), height, class: kind(value) }));

  const lanes = (left, width) => data.classes.flatMap((name, k) => {
    const label = draw("text", { x: left - 8, y: k * LANE + 15, class: "lane-name" }, shortened(name, Math.floor((left - 8) / LETTER)));
    label.append(draw("title", {}, name));
    return [label, draw("line", { x1: left, x2: width - RIGHT, y1: (k + 1) * LANE, y2: (k + 1) * LANE, class: "lane" })];
  });

  const curve = (top) => {
    const y = (sure) => (top + CURVE - 4 - sure * (CURVE - 8)).toFixed(1);
    const points = recording.rows.map((_, i) => {
      const broken = i === 0 || recording.start[i] > recording.end[i - 1];
      return `${broken ? "M" : "L"}${scale(recording.start[i]).toFixed(1)},${y(recording.sure[i])}H${scale(recording.end[i]).toFixed(1)}`;
    });
    return draw("path", { d: points.join(""), class: "sureness" });
  };

  // A few round times below the drawing.
  const ticks = (first, last, left, width, y) => {
    const most = Math.max(1, Math.floor((width - left) / TICK)), span = last - first || 1;
    const size = 10 ** Math.floor(Math.log10(span / most)), step = [1, 2, 5, 10].map((n) => n * size).find((n) => span / n <= most);
    const from = isDated ? first : Math.ceil(first / step) * step;
    return Array.from({ length: Math.floor((last - from) / step + 1e-9) + 1 }, (_, i) => from + i * step).flatMap((at) => [
      draw("line", { x1: scale(at), x2: scale(at), y1: y, y2: y + 5, class: "lane" }),
      draw("text", { x: scale(at), y: y + 18, class: "tick", "text-anchor": scale(at) > width - TICK / 2 ? "end" : at === first ? "start" : "middle" }, time(at)),
    ]);
  };

  const show = () => {
    recording = data.recordings[chooser ? Number(chooser.value) : 0];
    const width = holder.clientWidth, K = data.classes.length, top = K * LANE + 6, bottom = top + CURVE;
    const longest = Math.max(4, ...data.classes.map((name) => name.length));
    const left = Math.min(longest * LETTER + 12, width * 0.3);
    const first = recording.start[0], last = Math.max(...recording.end.slice(-1), recording.start[recording.start.length - 1]);
    scale = (value) => left + ((value - first) / (last - first || 1)) * (width - left - RIGHT);
    const svg = draw("svg", { width, height: bottom + AXIS, role: "img", "aria-label": spoken() });
    svg.append(
      ...lanes(left, width),
      ...bars((i) => recording.label[i] * 2 + Number(isWrong(i)), (v) => Math.floor(v / 2) * LANE + 4, BAR, (v) => (v % 2 ? "label wrong" : "label")),
      ...(data.truth ? bars((i) => (recording.truth[i] < 0 ? null : recording.truth[i]), (k) => k * LANE + 15, TRUE, () => "true") : []),
      draw("text", { x: left - 8, y: top + 12, class: "lane-name" }, "sure"),
      draw("line", { x1: left, x2: width - RIGHT, y1: top + 4, y2: top + 4, class: "lane" }),
      draw("line", { x1: left, x2: width - RIGHT, y1: bottom - 4, y2: bottom - 4, class: "lane" }),
      curve(top),
      ...ticks(first, last, left, width, bottom),
      draw("rect", { id: "timeline-cursor", x: 0, y: 0, width: 0, height: bottom, class: "cursor" }),
    );
    holder.replaceChildren(svg);
    point(chosen);
  };

  const spoken = () => `Labels of ${recording.rows.length} windows${recording.name ? ` of ${recording.name}` : ""}`;

  // ---- pointing at a window

  const point = (i) => {
    chosen = i === null || i >= recording.rows.length ? null : i;
    if (chosen === null) {
      status.textContent = "Point at the drawing, or go through it with the arrow keys ← and →. A click or Enter opens the window.";
      return;
    }
    const from = scale(recording.start[i]), cursor = byId("timeline-cursor"), row = recording.rows[i];
    cursor.setAttribute("x", from);
    cursor.setAttribute("width", Math.max(scale(recording.end[i]) - from, 2));
    const when = data.kind === "order" ? "" : ` at ${time(recording.start[i])}`;
    const truth = data.truth && recording.truth[i] >= 0 ? `, true label ${data.classes[recording.truth[i]]}` : "";
    const name = explained.has(row) ? make("a", { href: `#window-${row}`, textContent: `Window ${row}` }) : `Window ${row}`;
    status.replaceChildren(name, `${when}: ${data.classes[recording.label[i]]}, ${percent(recording.sure[i], 0)} sure${truth}.`,
      explained.has(row) ? "" : " It is not among the windows that this page explains.");
  };

  const under = ({ clientX }) => {
    const x = clientX - holder.getBoundingClientRect().left;
    let low = 0, high = recording.start.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (scale(recording.start[middle]) <= x) low = middle;
      else high = middle - 1;
    }
    return low;
  };

  const open = () => status.querySelector("a")?.click();

  holder.addEventListener("pointermove", (event) => point(under(event)));
  holder.addEventListener("click", (event) => { point(under(event)); open(); });
  holder.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter") open();
    if (!by) return;
    event.preventDefault();
    point(chosen === null ? 0 : Math.min(Math.max(chosen + by, 0), recording.rows.length - 1));
  });
  chooser?.addEventListener("input", () => { chosen = null; show(); });
  page.onRedraw(show);
  show();
})();
