"use strict";
// Plots that are complete as they are written.
for (const place of document.querySelectorAll("div.plot")) {
  const stored = document.getElementById(place.id + "-data");
  if (stored === null) continue;
  const found = JSON.parse(stored.textContent);
  Plotly.newPlot(place, found.data, found.layout, found.config);
}
