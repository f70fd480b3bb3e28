"use strict";
// Plots that are complete as they are written.
for (const place of document.querySelectorAll("div.plot")) {
  if (document.getElementById(`${place.id}-data`) === null) continue;
  const found = content(`${place.id}-data`);
  Plotly.newPlot(place, found.data, found.layout, found.config).then(() => {
    // A legend of many rows takes no height from the curves.
    const rows = place.querySelector(".legend .bg")?.getBBox().height ?? 0;
    if (rows > 40) Plotly.relayout(place, { height: found.layout.height + rows });
  });
}
