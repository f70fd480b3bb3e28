"use strict";
// The bodies in motion: a slider for the time and a button that plays it.
{
  const scene = content("scene"), canvas = document.getElementById("mechanism"), pen = canvas.getContext("2d");
  const last = scene.times.length - 1, HIGHEST = 480, TURN = 2 * Math.PI;
  const slider = make("input", { type: "range", min: 0, max: last, value: 0 });
  const button = make("button", { textContent: "Play" }), said = make("output", {});
  let scale = 1, began = null;
  const path = (points, closed) => {
    pen.beginPath();
    for (const point of points) pen.lineTo(...point);
    if (closed) pen.closePath();
  };
  const disc = ([x, y], radius) => { pen.beginPath(); pen.arc(x, y, radius, 0, TURN); };
  const stroke = (ink, width) => { pen.strokeStyle = ink; pen.lineWidth = width; pen.stroke(); };
  const fill = (ink, alpha) => { pen.globalAlpha = alpha; pen.fillStyle = ink; pen.fill(); pen.globalAlpha = 1; };
  const draw = {
    strokes(shape, points) {
      pen.setLineDash(shape.dashed ? [9, 3, 2, 3] : []);
      for (let i = 0; i < points.length; i += 2) { path(points.slice(i, i + 2)); stroke(shape.ink, i ? 0.6 : 1.3); }
      pen.setLineDash([]);
    },
    circle(shape, [centre], frame) {
      const radius = shape.radius * scale;
      disc(centre, radius);
      if (!shape.hollow) fill(shape.ink, 0.25);
      stroke(shape.ink, 1.6);
      if (!shape.angle) return;
      const [x, y] = centre, angle = shape.angle[frame];
      path([centre, [x + radius * Math.cos(angle), y - radius * Math.sin(angle)]]);
      stroke(shape.ink, 1.2);
    },
    polygon(shape, points) {
      if (points.length === 1) { disc(points[0], 8); fill(shape.ink, 0.4); return; }
      path(points, true);
      if (points.length > 2) fill(shape.ink, 0.25);
      stroke(shape.ink, points.length > 2 ? 1.6 : 4);
    },
    spring(shape, [[x, y], [toX, toY]]) {
      const length = Math.hypot(toX - x, toY - y) || 1, across = 6 / length;
      const at = (part, side) => [
        x + part * (toX - x) - side * across * (toY - y), y + part * (toY - y) + side * across * (toX - x)];
      const turns = Array.from({ length: 11 }, (_, i) => at(0.22 + 0.056 * i, i % 2 ? 1 : -1));
      path([[x, y], at(0.2, 0), ...turns, at(0.8, 0), [toX, toY]]);
      stroke(shape.ink, 1.1);
    },
    pin(shape, [[x, y]]) {
      if (shape.grounded) { path([[x, y], [x - 8, y + 13], [x + 8, y + 13]], true); fill(shape.ink, 0.4); }
      disc([x, y], 3.5); fill("#fff", 1); stroke("#222", 1.2);
    },
    mark(shape, [at], frame) {
      const [edge, inside] = shape.colours[frame];
      disc(at, edge === inside ? 5 : 3); fill(inside, 1); stroke(edge, 1);
    },
  };
  function show() {
    const frame = Number(slider.value), ratio = devicePixelRatio, wide = canvas.parentElement.clientWidth;
    scale = Math.min(wide / scene.width, HIGHEST / scene.height);
    const width = scene.width * scale, height = scene.height * scale;
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.lineJoin = pen.lineCap = "round";
    for (const shape of scene.shapes) {
      const row = shape.at[Math.min(frame, shape.at.length - 1)], points = [];
      for (let i = 0; i < row.length; i += 2) points.push([row[i] * scale, height - row[i + 1] * scale]);
      draw[shape.kind](shape, points, frame);
    }
    said.textContent = `t = ${scene.times[frame].toPrecision(4)} s`;
  }
  const pause = () => { began = null; button.textContent = "Play"; };
  function step(now) {
    if (began === null) return;
    const frame = Math.floor((now - began) * scene.fps / 1000);
    slider.value = Math.min(frame, last);
    show();
    if (frame >= last) pause(); else requestAnimationFrame(step);
  }
  button.addEventListener("click", () => {
    if (began !== null) { pause(); return; }
    const from = Number(slider.value) % last;
    button.textContent = "Pause";
    began = performance.now() - from / scene.fps * 1000;
    requestAnimationFrame(step);
  });
  slider.addEventListener("input", () => { pause(); show(); });
  addEventListener("resize", show);
  // The time that is read in the plot below.
  addEventListener("read", (event) => {
    const [start, end] = [scene.times[0], scene.times[last]];
    pause();
    slider.value = Math.round((event.detail - start) / (end - start) * last);
    show();
  });
  document.getElementById("playing").append(button, make("label", {}, "time", slider, said));
  show();
}
