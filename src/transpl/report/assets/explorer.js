"use strict";
// Choose a window; see its signal, who voted for what, and why. All numbers come with the page; the script computes none.
// Voters are channels, whose parts are differences of probability, or the witnesses of a council, whose parts are log odds.
(() => {
  const data = page.dataOf("explorer-data");
  if (!data) return;
  const { byId, make, percent, chip } = page;
  const MANY = 1000, FEW_SIGNALS = 12, FEW_CLASSES = 12, FEW_WITNESSES = 8;
  const OF_COUNCIL = data.kind === "council";
  const valuesOf = data.signals && signals.reader(data.signals, data.channels.length);
  const positionOf = new Map(data.windows.map((one, position) => [one.row, position]));
  const rankOf = new Map(data.windows.map((one, position) => [one.row, data.check[position]]));
  let order = [], current = 0, allSignals = false, allWitnesses = false;

  const best = (p) => p.indexOf(Math.max(...p));
  const sureness = (one) => Math.max(...one.answer);
  const differs = (one) => best(one.answer) !== one.label;
  const points = (part) => `${part < 0 ? "−" : "+"}${Math.abs(100 * part).toFixed(2)} points`;
  const ratio = (logOdds) => (Math.exp(Math.abs(logOdds)) > MANY ? `over ${MANY}` : Math.exp(Math.abs(logOdds)).toPrecision(3));
  const factor = (part) => `${part < 0 ? "÷" : "×"}\u00a0${ratio(part)}`;
  const partInWords = OF_COUNCIL ? factor : points;
  const cell = (content, properties = {}) => make("td", properties, content);
  const head = (text, scope) => make("th", { scope, textContent: text });

  const bar = (part, kind = "") => {
    const found = make("span", { className: `bar ${kind}` });
    found.style.setProperty("--part", part.toFixed(4));
    found.setAttribute("aria-hidden", "true");
    return found;
  };

  const table = (heads, rows) => {
    const found = make("table");
    found.createTHead().append(make("tr", {}, ...heads.map((text) => head(text, "col"))));
    found.createTBody().append(...rows);
    return found;
  };

  // ---- the parts of the panel

  const judged = (label) => {
    const truth = data.truth?.[current];
    return !truth ? "" : truth === label ? "; right by the true label" : `; wrong, the true label is ${truth}`;
  };

  const showTitle = (one) => {
    const label = data.classes[best(one.answer)], origin = one.origin ? ` (${one.origin})` : "";
    byId("window-title").textContent = `Window ${one.row}: ${label}, ${percent(sureness(one), 0)} sure${judged(label)}${origin}`;
    byId("window-sentence").textContent = `${OF_COUNCIL ? "Labelled" : "The vote says"} ${one.sentence}`;
  };

  const kindOf = (one, k) => (k === one.label ? "for" : k === one.against ? "against" : "others");

  // In their own order, so that the eye finds them again; if there are too many to see at once, the most probable first.
  const listedClasses = (one) => {
    const every = data.classes.map((_, k) => k);
    return every.length <= FEW_CLASSES ? every : every.sort((a, b) => one.vote[b] - one.vote[a] || a - b);
  };

  const showClasses = (one) => {
    const voted = OF_COUNCIL ? (data.answersDiffer ? ["this window alone", "as labelled"] : ["probability"]) : data.mode === "markov" ? ["vote"] : ["vote", "network"];
    const highest = Math.max(...one.vote);
    const rows = listedClasses(one).map((k) => make("tr", {},
      head(data.classes[k], "row"),
      make("td", { className: `barred ${k === one.label ? "best" : ""}` }, bar(one.vote[k] / highest, kindOf(one, k)), ` ${percent(one.vote[k])}`),
      ...(voted.length > 1 ? [cell(percent(one.answer[k]), { className: k === best(one.answer) ? "best" : "" })] : [])));
    byId("window-classes").replaceChildren(table(["class", ...voted], rows));
  };

  // Name, what it says alone, its part of the lead; a council's last two voters say nothing alone.
  const votersOf = (one) => data.voters.map((name, i) => ({ name, accuracy: data.accuracies?.[i], says: one.says[i], part: one.parts?.[i] }));

  // From the middle to the right for the label, to the left for the class it is compared with.
  const push = (part, largest) => {
    const length = largest > 0 ? Math.abs(part) / largest : 0;
    const sides = part < 0 ? [bar(length, "against"), bar(0)] : [bar(0), bar(length, "for")];
    return make("span", { className: "push" }, ...sides.map((side) => make("span", {}, side)));
  };

  const pushHead = (label, against) => {
    const found = make("th", { scope: "col" }, make("span", { className: "push-head" },
      make("span", { textContent: `←\u00a0${against}` }), make("span", { textContent: `${label}\u00a0→` })));
    found.setAttribute("aria-label", `towards ${against} or ${label}`);
    return found;
  };

  const alone = (says) => (says ? `alone: ${data.classes.map((name, k) => `${name} ${percent(says[k])}`).join(", ")}` : "");
  const said = (says) => make("span", { className: "said", textContent: says ? ` says ${data.classes[best(says)]}` : "" });

  const showVotes = (one) => {
    showVoteWords(one);
    if (one.against === null) return;
    const voters = votersOf(one).filter(({ says, part }) => says || part !== 0);
    voters.sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
    const largest = Math.abs(voters[0].part);
    const shown = OF_COUNCIL && !allWitnesses ? voters.slice(0, FEW_WITNESSES) : voters;
    const rows = shown.map(({ name, says, part }) => {
      const named = head(name, "row");
      if (OF_COUNCIL) named.append(said(says));
      return make("tr", { title: alone(says) }, named, cell(push(part, largest)), cell(partInWords(part), { className: "effect" }));
    });
    const found = table([OF_COUNCIL ? "witness" : "channel", "", "effect"], rows);
    found.tHead.rows[0].cells[1].replaceWith(pushHead(data.classes[one.label], data.classes[one.against]));
    byId("window-votes").replaceChildren(found);
    if (OF_COUNCIL) byId("all-witnesses").hidden = shown.length === voters.length;
  };

  const leadInWords = (one, label, against) => {
    if (!OF_COUNCIL) {
      return `Together the channels put ${label} ahead of ${against} by ${(100 * one.margin).toFixed(2)} percentage points, ` +
        "the sum of all effects.";
    }
    return `Together they make ${label} ${ratio(one.margin)} times as likely as ${against}, the product of all effects: ` +
      `× speaks for ${label}, ÷ for ${against}. A witness that proved reliable here has larger effects.`;
  };

  const showVoteWords = (one) => {
    byId("votes-words").textContent = one.against === null ? "There is no other class to decide against." :
      leadInWords(one, data.classes[one.label], data.classes[one.against]);
  };

  const showSignals = (one, position) => {
    const holder = byId("window-signals"), rounded = (value) => Number(value.toPrecision(3));
    byId("signal-words").textContent = valuesOf ? signalWords() : "The signals were not kept with these results.";
    if (!valuesOf) return;
    const width = holder.clientWidth;
    holder.replaceChildren(...drawnChannels(one).map((d) => {
      const name = data.channels[d];
      const found = signals.picture(name, valuesOf(position, d), one.codes[d], data.signals, d, data.patchLength, width);
      const trust = OF_COUNCIL ? "" : `, trust ${percent(data.weights[d], 0)}`;
      const words = `${name}, from ${rounded(found.low)} to ${rounded(found.high)}${trust}`;
      return make("figure", { className: "signal" }, make("figcaption", { textContent: words }), found.svg);
    }));
    byId("all-signals").hidden = allSignals || data.channels.length <= FEW_SIGNALS;
  };

  // Of many channels, those that decided most, in their own order.
  const drawnChannels = (one) => {
    const every = data.channels.map((_, d) => d);
    if (allSignals || every.length <= FEW_SIGNALS) return every;
    const parts = one.channelParts ?? one.parts ?? data.shares ?? [];
    const weight = (d) => Math.abs(parts[d] ?? 0);
    return every.sort((a, b) => weight(b) - weight(a)).slice(0, FEW_SIGNALS).sort((a, b) => a - b);
  };

  const signalWords = () => {
    const thinned = data.signals.stride > 1 ? ` One step in ${data.signals.stride} is drawn.` : "";
    const undone = data.undone ? " What was undone in the target is undone here too." : "";
    return `${data.signals.steps} time steps from left to right; values are in the data's own unit, each channel on its own ` +
      `scale. Colour and number below are the code of each piece of ${data.patchLength} steps.${thinned}${undone}`;
  };

  const likelier = (logOdds, more, less) => {
    if (logOdds === null) return `the source has no windows of ${less}`;
    const ratio = Math.exp(Math.abs(logOdds));
    return `${ratio > MANY ? `over ${MANY}` : ratio.toFixed(ratio < 10 ? 1 : 0)} times as likely in ${more} as in ${less}`;
  };

  // For a single step, the factor is stated already.
  const inAllTimes = (part, times) => (!OF_COUNCIL ? `${points(part)}; ` : times > 1 ? `${factor(part)} in total; ` : "");

  const step = ([channel, before, after, times, at, part, logOdds], more, less) => {
    const first = at * data.patchLength, last = (at + 2) * data.patchLength - 1;
    const where = times > 1 ? `${times} times, first at steps ${first} to ${last}` : `steps ${first} to ${last}`;
    return make("li", {}, make("b", { textContent: data.channels[channel] }), ": code ", chip(before), " then ", chip(after),
      `, ${likelier(logOdds, more, less)}. `, make("span", { className: "notes" }, `${inAllTimes(part, times)}${where}`));
  };

  const showList = (side, words, items) => {
    byId(`${side}-title`).textContent = words;
    byId(`window-${side}`).replaceChildren(...(items.length ? items : [make("li", { className: "notes", textContent: "nothing" })]));
  };

  const showEvidence = (one) => {
    if (one.against === null) return;
    const label = data.classes[one.label], against = data.classes[one.against];
    showList("for", `What spoke most for ${label}`, one.for.map((each) => step(each, label, against)));
    showList("against", `What spoke most for ${against}`, one.other.map((each) => step(each, against, label)));
    if (OF_COUNCIL) showCouncilsWords(one, label, against);
  };

  const inAll = (logOdds, label, against) => (logOdds < 0 ? `${against} ${ratio(logOdds)} times as likely as ${label}` :
    `${label} ${ratio(logOdds)} times as likely as ${against}`);

  const feature = ([at, value, part]) => {
    const [channel, quantity] = data.features[at];
    const words = `, ${quantity}: ${Math.abs(value).toFixed(1)} standard deviations ${value < 0 ? "below" : "above"} the mean. `;
    return make("li", {}, make("b", { textContent: channel }), words, make("span", { className: "notes" }, factor(part)));
  };

  const showCouncilsWords = (one, label, against) => {
    byId("codes-words").textContent = "Witnesses that read codes look at steps like these, from one piece to the next. " +
      `The product over all steps of all channels makes ${inAll(one.codeMargin, label, against)}.`;
    byId("linear").hidden = one.linearMargin === undefined;
    if (one.linearMargin === undefined) return;
    byId("linear-words").textContent = `${data.linear}: the product of the effects of all its numbers makes ${inAll(one.linearMargin, label, against)}.`;
    showList("features-for", `What spoke most for ${label}`, one.featuresFor.map(feature));
    showList("features-against", `What spoke most for ${against}`, one.featuresOther.map(feature));
  };

  const showNearest = (one) => {
    byId("nearest").hidden = !one.near.length;
    byId("window-nearest").replaceChildren(...one.near.map(([row, k, distance]) => make("li", {},
      make("b", { textContent: data.classes[k] }), `, source window ${row}: the same codes in ${percent(1 - distance, 0)} of the pieces`)));
  };

  const sumOfVotes = (one) => {
    const rows = data.channels.map((name, d) => make("tr", {}, head(name, "row"), cell(data.weights[d].toFixed(6)),
      ...data.classes.map((_, k) => cell(percent(data.shares[d] * one.says[d][k], 4)))));
    const sum = make("tr", { className: "chosen" }, head("sum", "row"), cell(""), ...one.vote.map((p) => cell(percent(p, 4))));
    return table(["channel", "trust", ...data.classes], [...rows, sum]);
  };

  const sumOfLogOdds = (one) => {
    const lead = one.against === null ? [] : [`log odds, ${data.classes[one.label]} to ${data.classes[one.against]}`];
    const row = (name, accuracy, says, part, properties) => make("tr", properties, head(name, "row"), cell(accuracy),
      ...data.classes.map((_, k) => cell(says ? percent(says[k], 4) : "")), ...lead.map(() => cell(part.toFixed(6).replace("-", "−"))));
    const rows = votersOf(one).map(({ name, accuracy, says, part }) => row(name, accuracy === undefined ? "" : percent(accuracy), says, part, {}));
    const found = table(["witness", "agrees with the labels", ...data.classes, ...lead],
      [...rows, row("together", "", one.vote, one.margin, { className: "chosen" })]);
    const words = "Below each class: what a witness says alone. Log odds add up, and their exponentials are the effects above.";
    found.append(make("caption", { className: "notes", textContent: words }));
    return found;
  };

  const showNumbers = (one) => {
    byId("numbers").querySelector(".wide").replaceChildren((OF_COUNCIL ? sumOfLogOdds : sumOfVotes)(one));
  };

  const show = () => {
    const one = data.windows[current];
    byId("window-panel").hidden = false;
    [showTitle, showClasses, showVotes, showEvidence, showNearest, showNumbers].forEach((part) => part(one));
    showSignals(one, current);
  };

  // ---- choosing

  const place = () => order.indexOf(current);

  const showPlace = () => {
    byId("window-list").value = String(current);
    byId("previous").disabled = place() === 0;
    byId("next").disabled = place() === order.length - 1;
    const sorted = byId("window-order").selectedOptions[0].textContent;
    byId("window-status").textContent = `Window ${data.windows[current].row}, ${place() + 1} of ${order.length}, ${sorted}. ` +
      "Move with the arrow keys ← and →.";
  };

  const turnTo = (position) => {
    current = position;
    showPlace();
    show();
  };

  // Back returns to what was seen before: a link is a step of its own, a walk with the controls is one step in all.
  const remember = (walking) => {
    const hash = `#window-${data.windows[current].row}`;
    if (location.hash === hash) return;
    if (walking && history.state?.walking) history.replaceState({ walking }, "", hash);
    else history.pushState({ walking }, "", hash);
  };

  const open = (position) => {
    turnTo(position);
    remember(true);
  };

  const positionIn = (row) => {
    const position = positionOf.get(row);
    if (position === undefined) byId("window-status").textContent = `Window ${row} is not among the ${order.length} in this page.`;
    return position;
  };

  const openRow = (row) => {
    const position = positionIn(row);
    if (position !== undefined) open(position);
  };

  const go = (by) => {
    const next = order[place() + by];
    if (next !== undefined) open(next);
  };

  const sortings = {
    check: (a, b) => rankOf.get(a.row) - rankOf.get(b.row),
    odds: (a, b) => differs(b) - differs(a) || sortings.check(a, b),
    agree: (a, b) => (a.agree ?? 0) - (b.agree ?? 0) || sortings.check(a, b),
    number: (a, b) => a.row - b.row,
  };

  const sort = () => {
    const compare = sortings[byId("window-order").value];
    order = data.windows.map((_, i) => i).sort((a, b) => compare(data.windows[a], data.windows[b]));
    byId("window-list").replaceChildren(...order.map((position) => {
      const one = data.windows[position];
      return make("option", { value: position, textContent: `${one.row}: ${data.classes[best(one.answer)]}, ${percent(sureness(one), 0)}` });
    }));
  };

  // ---- reaching it: links, keys, controls

  const rowOf = (hash) => (/^#window-\d+$/.test(hash) ? Number(hash.slice(8)) : null);

  const reach = (row) => {
    const position = positionIn(row);
    if (position !== undefined) {
      turnTo(position);
      remember(false);
    }
    byId("explorer").scrollIntoView();
    byId("window-panel").focus({ preventScroll: true });
  };

  const inView = () => {
    const { top, bottom } = byId("window-panel").getBoundingClientRect();
    return top < window.innerHeight && bottom > 0;
  };

  // Fields and boxes that scroll need the arrow keys themselves.
  const isForUs = ({ target, altKey, ctrlKey, metaKey, shiftKey }) => {
    if (altKey || ctrlKey || metaKey || shiftKey || target.closest?.("select, input, .wide")) return false;
    return byId("explorer").contains(target) || (target === document.body && inView());
  };

  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !isForUs(event)) return;
    event.preventDefault();
    go(by);
  });
  document.addEventListener("click", (event) => {
    const row = rowOf(event.target.closest?.("a")?.hash ?? "");
    if (row === null) return;
    event.preventDefault();
    reach(row);
  });
  // The browser itself returns to where the reader was on the page.
  window.addEventListener("popstate", ({ state }) => {
    const row = rowOf(location.hash), position = row === null ? order[0] : positionOf.get(row);
    if (row !== null && state === null) reach(row);  // typed into the address, or a link from elsewhere
    else if (position !== undefined) turnTo(position);
  });
  byId("previous").addEventListener("click", () => go(-1));
  byId("next").addEventListener("click", () => go(1));
  byId("all-signals").addEventListener("click", () => {
    allSignals = true;
    show();
    byId("window-signals").focus();
  });
  byId("all-witnesses")?.addEventListener("click", () => {
    allWitnesses = true;
    show();
    byId("window-votes").focus();
  });
  byId("window-list").addEventListener("input", (event) => open(Number(event.target.value)));
  byId("window-order").addEventListener("input", () => { sort(); open(order[0]); });
  byId("window-number").addEventListener("input", (event) => {
    if (/^\d+$/.test(event.target.value)) openRow(Number(event.target.value));
  });
  page.onRedraw(show);

  const asked = rowOf(location.hash);
  sort();
  current = order[0];
  showPlace();
  show();
  if (asked !== null) reach(asked);
})();
