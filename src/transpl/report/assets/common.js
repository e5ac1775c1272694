"use strict";
// What all scripts of the page share. The page is readable without them.
const page = (() => {
  const byId = (id) => document.getElementById(id);
  const dataOf = (id) => (byId(id) ? JSON.parse(byId(id).textContent) : null);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    return { ink: of("--ink"), soft: of("--soft"), ground: of("--ground"), accent: of("--accent"), cell: of("--cell") };
  };
  const onRedraw = (draw) => {
    let width = window.innerWidth;
    dark.addEventListener("change", draw);
    // A phone's address bar changes the height while scrolling; only the width matters.
    window.addEventListener("resize", () => {
      if (window.innerWidth !== width) {
        width = window.innerWidth;
        draw();
      }
    });
  };
  // Drawing waits until the reader comes near, so that a page with many figures opens at once.
  const whenNear = (holder, draw) => {
    let due = true, near = false;
    const drawIf = (wanted) => {
      if (!wanted) return;
      due = false;
      draw();
    };
    new IntersectionObserver((entries) => {
      near = entries[entries.length - 1].isIntersecting;
      drawIf(near && due);
    }, { rootMargin: "600px" }).observe(holder);
    onRedraw(() => {
      due = true;
      drawIf(near);
    });
    window.addEventListener("beforeprint", () => drawIf(due));
  };
  const percent = (share, decimals = 1) => `${(100 * share).toFixed(decimals)}\u00a0%`;
  const chip = (code) => make("span", { className: `chip code-${code % 8}`, textContent: code });

  document.querySelectorAll(".controls").forEach((controls) => { controls.hidden = false; });
  return { byId, dataOf, make, colours, onRedraw, whenNear, percent, chip };
})();

// Finished figures, drawn in the reader's colours and to the width of the page.
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
