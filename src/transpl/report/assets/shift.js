"use strict";
// Which code follows which in a chosen channel: source, target and their difference.
(() => {
  const shift = page.dataOf("shift-data");
  if (!shift) return;
  const chooser = page.byId("shift-channel");
  const CHANGE = { less: "#0072B2", more: "#D55E00" }, LEAST_REACH = 0.05, MOST_TICKS = 12;
  const TITLES = { source: "source", target: "target", difference: "change from source to target" };

  // p(j | i); the row of a code that never occurred is all zero.
  const probabilities = (counts) => counts.map((row) => {
    const total = row.reduce((sum, count) => sum + count, 0);
    return row.map((count) => (total ? count / total : 0));
  });
  const minus = (one, other) => one.map((row, i) => row.map((value, j) => value - other[i][j]));

  const hover = (source, target) => source.map((row, i) => row.map((value, j) =>
    `after code ${i} comes code ${j}:<br>source ${page.percent(value)}, target ${page.percent(target[i][j])}`));

  const scale = (side, values) => {
    const { cell, accent } = page.colours();
    if (side !== "difference") return { zmin: 0, zmax: 1, colorscale: [[0, cell], [1, accent]] };
    const reach = Math.max(LEAST_REACH, ...values.flat().map(Math.abs));
    return { zmin: -reach, zmax: reach, colorscale: [[0, CHANGE.less], [0.5, cell], [1, CHANGE.more]] };
  };

  const drawMatrix = (side, values, text) => {
    const { ink } = page.colours(), holder = page.byId(`matrix-${side}`);
    const ticks = { dtick: Math.max(1, Math.ceil(values.length / MOST_TICKS)), tick0: 0, fixedrange: true, showgrid: false, zeroline: false };
    const trace = {
      type: "heatmap", z: values, text, hovertemplate: "%{text}<extra></extra>", xgap: 1, ygap: 1, ...scale(side, values),
      colorbar: { thickness: 8, outlinewidth: 0, tickformat: ".0%" },
    };
    const layout = {
      title: { text: TITLES[side], font: { size: 14 }, y: 0.97 },
      height: holder.clientWidth < 330 ? 260 : 300,
      margin: { l: 40, r: 10, t: 36, b: 40 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 12 },
      xaxis: { ...ticks, title: { text: "next code", standoff: 4 } },
      yaxis: { ...ticks, title: { text: "code", standoff: 4 }, autorange: "reversed" },
    };
    Plotly.react(holder, [trace], layout, { displayModeBar: false, responsive: true });
    holder.setAttribute("aria-label", `${TITLES[side]}: which code follows which in ${shift.channels[chooser.value]}`);
  };

  const showTable = () => {
    document.querySelectorAll("#moved tbody").forEach((body) => { body.hidden = body.dataset.channel !== chooser.value; });
    page.byId("moved").classList.add("chosen");
  };

  const draw = () => {
    const source = probabilities(shift.source[chooser.value]), target = probabilities(shift.target[chooser.value]);
    const text = hover(source, target), difference = minus(target, source);
    Object.entries({ source, target, difference }).forEach(([side, values]) => drawMatrix(side, values, text));
    page.byId("matrix-words").textContent =
      `${shift.channels[chooser.value]}: how often one code follows another, in percent of the times the first occurs. ` +
      "In the difference, orange means more often in the target, blue less often.";
    showTable();
  };

  chooser.addEventListener("input", draw);
  page.whenNear(document.querySelector(".matrices"), draw);
  showTable();
})();
