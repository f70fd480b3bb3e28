"use strict";
// The time under the mouse, as a point of each phase portrait.
{
  const time = document.getElementById("time"), portrait = document.getElementById("portrait");
  const at = (t, when) => {
    let low = 0, high = t.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (t[middle] <= when) low = middle; else high = middle - 1;
    }
    return low;
  };
  // The first half of the traces are the curves, as the library unpacked them, the others the points.
  const curves = portrait._fullData.slice(0, portrait.data.length / 2);
  time.on("plotly_hover", (event) => {
    const when = Number(event.points[0].x), rows = curves.map((c) => at(c.customdata, when));
    dispatchEvent(new CustomEvent("read", { detail: when }));
    Plotly.restyle(portrait, {
      x: curves.map((c, i) => [c.x[rows[i]]]), y: curves.map((c, i) => [c.y[rows[i]]]),
    }, curves.map((_, i) => curves.length + i));
  });
}
