"use strict";
// A window's channels as curves over coloured pieces, each with the number of its code.
const signals = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ABSENT = 65535, HEIGHT = 92, STRIP = 18, TOP = 6, LEFT = 4, LETTER = 10, LEAST_SPAN = 0.1;

  const draw = (tag, attributes, text) => {
    const element = document.createElementNS(SVG, tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const unpack = (packed) => {
    const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return (at) => view.getUint16(2 * at, true);
  };

  // values(position, channel): the points of one curve, null behind its end.
  const reader = (packed, channels) => {
    const level = unpack(packed);
    return (position, channel) => {
      const first = (position * channels + channel) * packed.points, low = packed.low[channel];
      const unit = (packed.high[channel] - low) / (ABSENT - 1);
      return Array.from({ length: packed.points }, (_, i) => {
        const found = level(first + i);
        return found === ABSENT ? null : low + found * unit;
      });
    };
  };

  // The curve's own range, but never so narrow that noise looks large.
  const range = (values, low, high) => {
    const known = values.filter((value) => value !== null);
    const least = Math.min(...known), most = Math.max(...known), missing = LEAST_SPAN * (high - low) - (most - least);
    return missing > 0 ? [least - missing / 2, most + missing / 2] : [least, most];
  };

  const curve = (values, stride, x, y) => {
    const points = values.flatMap((value, i) => (value === null ? [] : [`${x(i * stride).toFixed(1)},${y(value).toFixed(1)}`]));
    return draw("polyline", { points: points.join(" "), class: "curve" });
  };

  // Stretches of equal codes as [code, first piece, number of pieces].
  const runs = (codes) => codes.reduce((found, code, i) => {
    const last = found[found.length - 1];
    if (last && last[0] === code) last[2] += 1;
    else found.push([code, i, 1]);
    return found;
  }, []);

  const piece = (code, first, n, length, x, numbered) => {
    const from = x(first * length), to = x((first + n) * length), group = draw("g", { class: `code-${code % 8}` });
    group.append(
      draw("title", {}, `steps ${first * length} to ${(first + n) * length - 1}: code ${code}`),
      draw("rect", { x: from, y: 0, width: Math.max(to - from - 1, 0.5), height: HEIGHT - STRIP, class: "tint" }),
      draw("rect", { x: from, y: HEIGHT - STRIP, width: Math.max(to - from - 1, 0.5), height: STRIP, class: "solid" }),
    );
    if (numbered) group.append(draw("text", { x: (from + to) / 2, y: HEIGHT - 5, class: "code-number" }, code));
    return group;
  };

  const pieces = (codes, length, x) => {
    const known = codes.filter((code) => code >= 0), wide = x(length) - x(0) >= LETTER;
    const shown = wide ? known.map((code, i) => [code, i, 1]) : runs(known);
    return shown.map(([code, first, n]) => piece(code, first, n, length, x, x(n * length) - x(0) >= LETTER));
  };

  const picture = (name, values, codes, packed, channel, length, width) => {
    const x = (step) => LEFT + (step / packed.steps) * (width - 2 * LEFT);
    const [low, high] = range(values, packed.low[channel], packed.high[channel]);
    const y = (value) => HEIGHT - STRIP - TOP - ((value - low) / (high - low || 1)) * (HEIGHT - STRIP - 2 * TOP);
    const words = `${name}: codes ${codes.filter((code) => code >= 0).join(", ")}`;
    const svg = draw("svg", { width, height: HEIGHT, role: "img", "aria-label": words });
    svg.append(...pieces(codes, length, x), curve(values, packed.stride, x, y));
    return { svg, low, high };
  };

  return { reader, picture };
})();
