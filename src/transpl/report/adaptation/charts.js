"use strict";
// Figures made beforehand, drawn in the reader's colours and to the width of the page.
(() => {
  const NARROW = 600;

  const coloured = (trace, { cell, accent }) =>
    trace.type === "heatmap" ? { ...trace, colorscale: [[0, cell], [1, accent]] } : trace;

  const short = (names) => ({ tickmode: "array", tickvals: names.map((_, row) => row), ticktext: names });

  const laidOut = (layout, { ink }, narrow) => ({
    ...layout,
    yaxis: { ...layout.yaxis, ...(narrow && layout.meta?.shortRows ? short(layout.meta.shortRows) : {}) },
    font: { ...layout.font, color: ink, size: narrow ? 11 : 13 },
    margin: { ...layout.margin, l: narrow ? 40 : 60, r: narrow ? 8 : 20 },
  });

  const draw = (holder) => {
    const figure = page.dataOf(`${holder.id}-data`), colours = page.colours();
    const narrow = holder.clientWidth < NARROW;
    const traces = figure.data.map((trace) => coloured(trace, colours));
    Plotly.react(holder, traces, laidOut(figure.layout, colours, narrow), { displayModeBar: false, responsive: true });
  };

  document.querySelectorAll(".chart").forEach((holder) => page.whenNear(holder, () => draw(holder)));
})();
