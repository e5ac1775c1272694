"use strict";
// Sorting, filtering and the heat map of the leaderboard. The page is readable without them.
(() => {
  const byId = (id) => document.getElementById(id);
  document.querySelectorAll(".controls").forEach((controls) => { controls.hidden = false; });

  const onChange = (ids, act) => ids.map(byId).filter(Boolean).forEach((field) => {
    field.addEventListener("input", act);
  });

  // ---- sortable table

  const sortBy = (head) => {
    const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
    const turned = { ascending: "descending", descending: "ascending" };
    const direction = turned[head.getAttribute("aria-sort")] || head.dataset.first;
    const sign = direction === "ascending" ? 1 : -1;
    const key = (row) => row.cells[column].dataset.value;
    const compare = (a, b) => {
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined); // missing values come last
      const difference = Number(a) - Number(b);
      return sign * (Number.isNaN(difference) ? a.localeCompare(b) : difference);
    };
    const rows = Array.from(body.rows).sort((one, other) => compare(key(one), key(other)));
    body.append(...rows);
    table.querySelectorAll("thead th").forEach((each) => {
      each.setAttribute("aria-sort", each === head ? direction : "none");
    });
  };
  document.querySelectorAll(".sortable thead button").forEach((button) => {
    button.addEventListener("click", () => sortBy(button.closest("th")));
  });

  const showSet = () => {
    const wanted = byId("standings-set").value;
    for (const row of byId("standings").tBodies[0].rows) row.hidden = wanted !== "" && row.dataset.set !== wanted;
  };
  onChange(["standings-set"], showSet);

  // ---- critical differences

  const showRanks = () => {
    let found = false;
    document.querySelectorAll("figure.ranks").forEach((figure) => {
      const chosen = figure.dataset.set === byId("rank-set").value && figure.dataset.metric === byId("rank-metric").value;
      figure.hidden = !chosen;
      found = found || chosen;
    });
    byId("rank-none").hidden = found;
  };
  if (byId("rank-set")) {
    onChange(["rank-set", "rank-metric"], showRanks);
    showRanks();
  }

  // ---- runs

  const filterRuns = () => {
    const words = byId("run-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = { set: byId("run-set").value, row: byId("run-row").value, state: byId("run-state").value };
    const runs = document.querySelectorAll("#runs > details");
    let left = 0;
    runs.forEach((run) => {
      const text = run.firstElementChild.textContent.toLowerCase();
      run.hidden = !(
        words.every((word) => text.includes(word)) &&
        Object.entries(chosen).every(([name, value]) => value === "" || run.dataset[name] === value)
      );
      left += !run.hidden;
    });
    byId("run-count").textContent = left === runs.length ? `${left} runs` : `${left} of ${runs.length} runs`;
  };
  if (byId("run-text")) onChange(["run-text", "run-set", "run-row", "run-state"], filterRuns);

  // ---- heat map

  if (!byId("heat-data")) return;
  const data = JSON.parse(byId("heat-data").textContent);
  const NARROW = 600, LETTER = 7, TEXT_CELL = 42, LEAST_CELL = 15, LONG = 100;

  // Plotly reads tags in its texts.
  const literal = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  // The end of a name tells rows of one method apart.
  const cut = (text, most) => {
    const head = Math.floor(most / 3);
    return text.length > most ? `${text.slice(0, head)}…${text.slice(text.length - most + head + 1)}` : text;
  };
  const shown = (value, metric) => value.toFixed(metric.unit === "s" && value >= LONG ? 0 : metric.decimals);
  const spread = (cell, metric) =>
    shown(cell[0], metric) + (cell[1] === null ? "" : ` ± ${shown(cell[1], metric)}`) + (metric.unit === "%" ? " %" : " s");
  const hover = (row, pair, cell, metric) =>
    `${literal(cut(row, 60))}<br>${literal(pair)}: ` +
    (cell ? `${spread(cell, metric)} (${cell[2]} seed${cell[2] === 1 ? "" : "s"})` : "not finished");

  const numbersAsTable = (set, cells, metric) => {
    const table = document.createElement("table");
    const line = (where, texts, first) => {
      const row = where.insertRow();
      texts.forEach((text, i) => {
        const cell = document.createElement(first || i === 0 ? "th" : "td");
        if (cell.tagName === "TH") cell.scope = first ? "col" : "row";
        cell.textContent = text;
        row.append(cell);
      });
    };
    line(table.createTHead(), ["method", ...set.pairs], true);
    const body = table.createTBody();
    set.rows.forEach((name, i) => {
      line(body, [name, ...cells[i].map((cell) => (cell ? spread(cell, metric) : "–"))], false);
    });
    byId("heat-numbers").hidden = false;
    byId("heat-numbers").querySelector(".wide").replaceChildren(table);
  };

  const drawHeat = () => {
    const set = data.sets[byId("heat-set").value], metric = data.metrics[byId("heat-metric").value];
    const cells = set.cells[byId("heat-metric").value];
    const room = byId("heat").parentElement.clientWidth, narrow = room < NARROW;
    const most = narrow ? 18 : 44;
    const names = set.rows.map((name) => cut(name, most));
    const left = 16 + LETTER * Math.max(...names.map((name) => name.length));
    const right = narrow ? 10 : 80;
    const width = Math.max(room, left + right + LEAST_CELL * set.pairs.length);
    const withText = (width - left - right) / set.pairs.length >= TEXT_CELL;
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--soft").trim();
    const axis = (names_) => ({
      tickmode: "array", tickvals: names_.map((_, i) => i), ticktext: names_.map(literal), showgrid: false,
      zeroline: false, fixedrange: true, range: [-0.5, names_.length - 0.5],
    });
    const bar = narrow
      ? { orientation: "h", y: 0, yanchor: "top", thickness: 10, len: 1 }
      : { thickness: 14, len: 1 };
    const trace = {
      type: "heatmap",
      z: cells.map((row) => row.map((cell) => (cell ? cell[0] : null))),
      text: cells.map((row) => row.map((cell) => (cell && withText ? shown(cell[0], metric) : ""))),
      texttemplate: "%{text}",
      hovertext: cells.map((row, i) => row.map((cell, j) => hover(set.rows[i], set.pairs[j], cell, metric))),
      hoverinfo: "text",
      hoverongaps: true,
      colorscale: "Cividis",
      reversescale: metric.better !== "higher",
      colorbar: { ...bar, outlinewidth: 0, ticksuffix: metric.unit === "%" ? " %" : " s" },
      xgap: 2,
      ygap: 2,
    };
    const layout = {
      width,
      height: 26 * set.rows.length + (narrow ? 110 : 70),
      margin: { l: left, r: right, t: 50, b: narrow ? 50 : 15 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 12 },
      xaxis: { ...axis(set.pairs), side: "top" },
      yaxis: { ...axis(set.rows), ticktext: names.map(literal), range: [set.rows.length - 0.5, -0.5] },
    };
    Plotly.react("heat", [trace], layout, { displayModeBar: false });
    byId("heat-words").textContent = `${set.name}: ${metric.label}, ${metric.unit === "%" ? "percent" : "seconds"}.`;
    numbersAsTable(set, cells, metric);
  };
  onChange(["heat-set", "heat-metric"], drawHeat);
  window.addEventListener("resize", drawHeat);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawHeat);
  drawHeat();
})();
