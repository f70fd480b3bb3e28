"use strict";
// Slices of a table under sliders. Grids: a curve along one axis and a map over two. Samples: a
// cloud of points. The readout tells the numbers of a point and the command that computes it.
{
  const sweep = content("sweep"), byId = (id) => document.getElementById(id);
  const axes = {};
  for (const [name, axis] of Object.entries(sweep.axes))
    axes[name] = { unit: axis.unit, values: unpacked(axis.values) };
  const status = { dims: sweep.status.dims, shape: sweep.status.values.shape, values: unpacked(sweep.status.values) };
  const tables = [...sweep.parameters, ...sweep.observables].map((o) => ({
    ...o, dims: o.dims ?? status.dims, shape: o.values.shape, values: unpacked(o.values),
  }));
  const observables = tables.slice(sweep.parameters.length);
  const escape = (name) => name.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const withUnit = (name, unit) => escape(unit ? `${name} [${unit}]` : name);
  // Longer curves are drawn by their extremes in so many bins: no spike is lost.
  const MOST_DRAWN = 20000, BINS = 4000;
  const layout = (more) => ({ ...sweep.layout, height: 400, ...more });
  const state = { chosen: 0, x: null, y: null, colour: 0, at: {}, pinned: false };
  for (const name of Object.keys(axes)) state.at[name] = Math.floor(axes[name].values.length / 2);

  function value(table, at) {
    let place = 0;
    table.dims.forEach((dim, i) => { place = place * table.shape[i] + (at[dim] ?? 0); });
    return table.values[place];
  }
  const failed = (at) => value(status, at) > 0;
  function isGeometric(x) {
    if (x.length < 3 || !(x[0] > 0) || x[x.length - 1] / x[0] < 3) return false;
    const first = Math.log(x[1] / x[0]);
    return x.every((_, i) => i === 0 || Math.abs(Math.log(x[i] / x[i - 1]) - first) <= 1e-6 * Math.abs(first));
  }
  function thinned(y) {
    const all = Array.from(y.keys());
    if (all.length <= MOST_DRAWN) return all;
    const kept = [];
    for (let bin = 0; bin < BINS; bin++) {
      const first = Math.floor(bin * y.length / BINS), last = Math.floor((bin + 1) * y.length / BINS);
      let low = first, high = first;
      for (let i = first; i < last; i++) {
        if (!(y[i] >= y[low])) low = i;
        if (!(y[i] <= y[high])) high = i;
      }
      kept.push(...[...new Set([first, low, high, last - 1])].sort((a, b) => a - b));
    }
    return kept;
  }

  // Numbers of a point and its command.
  function read(at) {
    const code = value(status, at), found = byId("readout");
    const parameters = sweep.sampled
      ? tables.slice(0, sweep.parameters.length).map((p) => [p.name, value(p, at), p.unit])
      : status.dims.map((d) => [d, axes[d].values[at[d]], axes[d].unit]);
    const numbers = observables.map((o) => [o.name, value(o, at), o.unit]);
    const beside = Object.keys(axes).filter((d) => !status.dims.includes(d))
      .map((d) => [d, axes[d].values[at[d]], axes[d].unit]);
    const words = (list) => list.map(([n, x, unit]) => `${n} = ${number(x)}${unit ? " " + unit : ""}`).join(", ");
    found.replaceChildren(make("div", { textContent: words([...parameters, ...beside]) }),
      make("div", { textContent: words(numbers) }));
    if (code !== 0)
      found.append(make("div", { className: "failed", textContent: sweep.words[String(code)] }));
    if (sweep.command) {
      const set = parameters.map(([n, x]) => ` --set ${/^[\w.]+$/.test(n) ? n : `'${n}'`}=${x}`).join("");
      found.append(make("code", { id: "command", textContent: sweep.command + set }));
    }
  }
  function listen(place, where) {
    place.on("plotly_hover", (event) => {
      const at = state.pinned ? null : where(event.points[0]);
      if (at) read(at);
    });
    place.on("plotly_click", (event) => {
      const at = where(event.points[0]);
      if (!at) return;
      state.pinned = !state.pinned;
      read(at);
      if (!sweep.sampled && place.id === "map") { Object.assign(state.at, at); update(); }
    });
  }

  function drawCurve() {
    const table = observables[state.chosen], x = axes[state.x].values;
    const y = Float64Array.from(x, (_, i) => value(table, { ...state.at, [state.x]: i }));
    const kept = thinned(y), bad = Array.from(x.keys()).filter((i) => failed({ ...state.at, [state.x]: i }));
    const finite = y.filter(Number.isFinite);
    const bottom = finite.length ? finite.reduce((a, b) => Math.min(a, b)) : 0;
    const traces = [
      { type: "scatter", mode: x.length < 60 ? "lines+markers" : "lines", x: kept.map((i) => x[i]),
        y: kept.map((i) => y[i]), customdata: kept, line: { color: "#1f4e79", width: 1.4, simplify: false },
        hovertemplate: "%{x}: %{y:.10g}<extra></extra>", showlegend: false },
      { type: "scatter", mode: "markers", x: bad.map((i) => x[i]), y: bad.map(() => bottom), customdata: bad,
        marker: { color: sweep.colours.failed, symbol: "line-ns-open", size: 10 }, name: "failed",
        hovertemplate: "%{x}: failed<extra></extra>", showlegend: bad.length > 0 },
    ];
    const here = x[state.at[state.x]];
    Plotly.react(byId("curve"), traces, layout({
      xaxis: { title: { text: withUnit(state.x, axes[state.x].unit) }, type: isGeometric(x) ? "log" : "linear" },
      yaxis: { title: { text: table.label } },
      shapes: state.y ? [{ type: "line", x0: here, x1: here, y0: 0, y1: 1, yref: "paper",
        line: { color: "#777", width: 1, dash: "dot" } }] : [],
    }), sweep.config);
  }
  function drawMap() {
    byId("map").style.display = state.y ? "" : "none";
    if (!state.y) return;
    const table = observables[state.chosen], x = axes[state.x].values, y = axes[state.y].values;
    const rows = (what) => Array.from(y, (_, j) => Array.from(x, (_, i) => what({ ...state.at, [state.x]: i, [state.y]: j })));
    const hover = `${escape(state.x)} %{x}<br>${escape(state.y)} %{y}<br>%{z:.10g}<extra></extra>`;
    const traces = [
      { type: "heatmap", x: Array.from(x), y: Array.from(y), z: rows((at) => value(table, at)),
        colorscale: sweep.colours.map, colorbar: { thickness: 14 }, hovertemplate: hover, hoverongaps: true },
      { type: "heatmap", x: Array.from(x), y: Array.from(y), z: rows((at) => (failed(at) ? 1 : null)),
        colorscale: [[0, sweep.colours.failed], [1, sweep.colours.failed]], showscale: false, hoverinfo: "skip" },
    ];
    const line = { color: "#fff", width: 1.5, dash: "dot" };
    const across = y[state.at[state.y]];
    Plotly.react(byId("map"), traces, layout({
      height: 480,
      xaxis: { title: { text: withUnit(state.x, axes[state.x].unit) }, type: isGeometric(x) ? "log" : "linear" },
      yaxis: { title: { text: withUnit(state.y, axes[state.y].unit) }, type: isGeometric(y) ? "log" : "linear" },
      shapes: [{ type: "line", x0: 0, x1: 1, xref: "paper", y0: across, y1: across, line }],
    }), sweep.config);
  }
  function drawCloud() {
    const [x, y] = [tables[state.x], tables[state.y]], colour = tables[state.colour];
    const all = Array.from(status.values.keys()), good = all.filter((i) => status.values[i] === 0);
    const bad = all.filter((i) => status.values[i] > 0);
    const cloud = (rows, more) => ({ type: "scatter", mode: "markers", x: rows.map((i) => x.values[i]),
      y: rows.map((i) => y.values[i]), customdata: rows, hovertemplate: "%{x:.8g}, %{y:.8g}<extra></extra>", ...more });
    Plotly.react(byId("curve"), [
      cloud(good, { showlegend: false, marker: { size: 6, color: good.map((i) => colour.values[i]),
        colorscale: sweep.colours.map, colorbar: { thickness: 14, title: { text: colour.label } } } }),
      cloud(bad, { name: "failed", showlegend: bad.length > 0, marker: { size: 7, color: sweep.colours.failed, symbol: "x" } }),
    ], layout({ height: 560, xaxis: { title: { text: x.label } }, yaxis: { title: { text: y.label } },
      legend: { orientation: "h" } }), sweep.config);
  }

  function choice(words, names, chosen, then) {
    const select = make("select", {});
    names.forEach((name, i) => select.append(make("option", { value: i, textContent: name })));
    select.value = chosen;
    select.addEventListener("input", () => { then(Number(select.value)); });
    return make("label", {}, words, select);
  }
  function slider(name) {
    const { values, unit } = axes[name];
    const range = make("input", { type: "range", min: 0, max: values.length - 1, step: 1 });
    range.value = state.at[name];
    range.dataset.axis = name;
    const said = make("output", {});
    const say = () => { said.textContent = `${number(values[state.at[name]])}${unit ? " " + unit : ""}`; };
    range.addEventListener("input", () => { state.at[name] = Number(range.value); say(); draw(); });
    say();
    return make("label", {}, name, range, said);
  }
  // Axes of the observable, the longest first; those of one value need no slider.
  const dims = () => observables[state.chosen].dims.filter((d) => axes[d].values.length > 1);
  function update() {
    const place = byId("controls");
    if (sweep.sampled) {
      const names = tables.map((t) => t.name);
      place.replaceChildren(...["x", "y", "colour"].map((key) =>
        choice({ x: "right", y: "up", colour: "colour" }[key], names, state[key], (i) => { state[key] = i; draw(); })));
      draw();
      return;
    }
    const long = [...dims()].sort((a, b) => axes[b].values.length - axes[a].values.length);
    if (!long.includes(state.x)) state.x = long[0] ?? observables[state.chosen].dims[0];
    if (state.y !== null && (!long.includes(state.y) || state.y === state.x))
      state.y = long.find((d) => d !== state.x) ?? null;
    const others = long.filter((d) => d !== state.x);
    const found = [choice("quantity", observables.map((o) => o.name), state.chosen, (i) => { state.chosen = i; update(); })];
    if (long.length > 1) {
      found.push(choice("along", long, long.indexOf(state.x), (i) => { state.x = long[i]; update(); }));
      found.push(choice("map", ["none", ...others], 1 + others.indexOf(state.y), (i) => { state.y = i ? others[i - 1] : null; update(); }));
    }
    place.replaceChildren(...found, ...others.map(slider));
    draw();
  }
  function draw() {
    if (sweep.sampled) drawCloud();
    else { drawCurve(); drawMap(); }
  }

  if (sweep.sampled) {
    state.x = 0;
    state.y = Math.min(sweep.parameters.length, tables.length - 1);
    state.colour = Math.min(1, tables.length - 1);
  } else {
    state.y = [...dims()].sort((a, b) => axes[b].values.length - axes[a].values.length)[1] ?? null;
  }
  update();
  if (sweep.sampled) {
    listen(byId("curve"), (p) => ({ [status.dims[0]]: p.customdata }));
  } else {
    listen(byId("curve"), (p) => ({ ...state.at, [state.x]: p.customdata }));
    if (state.y === null) Plotly.newPlot(byId("map"), [], layout({}), sweep.config);
    listen(byId("map"), (p) => ({ ...state.at, [state.x]: p.pointIndex[1], [state.y]: p.pointIndex[0] }));
    if (state.y === null) byId("map").style.display = "none";
  }
}
