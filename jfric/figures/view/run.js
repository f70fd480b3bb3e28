"use strict";
// The time under the mouse, as a point of each phase portrait.
{
  const time = document.getElementById("time"), portrait = document.getElementById("portrait");
  const motions = content("motions").map((m) => ({ t: unpacked(m.t), q: unpacked(m.q), v: unpacked(m.v) }));
  const at = (t, when) => {
    let low = 0, high = t.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (t[middle] <= when) low = middle; else high = middle - 1;
    }
    return low;
  };
  if (time && portrait) {
    const first = portrait.data.length - motions.length;
    const places = motions.map((_, i) => first + i);
    time.on("plotly_hover", (event) => {
      const when = Number(event.points[0].x);
      const rows = motions.map((m) => at(m.t, when));
      Plotly.restyle(portrait, {
        x: motions.map((m, i) => [m.q[rows[i]]]),
        y: motions.map((m, i) => [m.v[rows[i]]]),
      }, places);
    });
  }
}
