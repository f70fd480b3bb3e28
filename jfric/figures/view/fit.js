"use strict";
// One record and signal at a time.
{
  const place = document.getElementById("compared"), stored = content("compared-all");
  const choice = document.getElementById("choice");
  const show = () => {
    const found = stored[Number(choice.value)];
    Plotly.react(place, found.data, found.layout, found.config);
  };
  stored.forEach((found, i) => choice.append(make("option", { value: i, textContent: found.label })));
  choice.addEventListener("input", show);
  show();
}
