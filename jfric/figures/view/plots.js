"use strict";
// A plot on a phone: names of curves of one panel are at the cursor, phase portraits one below the
// other with their names below them.
function narrowed(layout, id) {
  const axes = Object.keys(layout).filter((key) => /^xaxis\d*$/.test(key));
  for (const key of Object.keys(layout)) if (/^legend\d/.test(key)) layout[key].visible = false;
  layout.margin.t += 40; // the buttons above a legend of two rows
  if (id !== "portrait") return;
  axes.forEach((x, i) => {
    const top = 1 - i / axes.length, bottom = 1 - (i + 1) / axes.length;
    layout[x].domain = [0, 1];
    layout[x.replace("x", "y")].domain = [bottom + (axes.length > 1 ? 0.1 : 0), top];
  });
  layout.height *= axes.length;
  layout.legend = { orientation: "h", y: -0.06, yanchor: "top" };
}
// Plots that are complete as they are written.
for (const place of document.querySelectorAll("div.plot")) {
  if (document.getElementById(`${place.id}-data`) === null) continue;
  const found = content(`${place.id}-data`);
  if (place.clientWidth < 640) narrowed(found.layout, place.id);
  Plotly.newPlot(place, found.data, found.layout, found.config).then(() => {
    // A legend of many rows takes no height from the curves.
    const rows = place.querySelector(".legend .bg")?.getBBox().height ?? 0;
    if (rows > 40) Plotly.relayout(place, { height: found.layout.height + rows });
  });
}
