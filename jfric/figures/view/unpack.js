"use strict";
// What the page holds packed, as gzip in base 85: data by name, the drawing library. Its other
// scripts, which wait as text, run after that.
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
function unzipped(text) {
  const values = Object.fromEntries([...DIGITS].map((digit, i) => [digit, i]));
  const length = Math.floor((text.length * 4) / 5), whole = text + "~".repeat((5 - (text.length % 5)) % 5);
  const bytes = new DataView(new ArrayBuffer((whole.length / 5) * 4));
  for (let i = 0; i < whole.length; i += 5) {
    let word = 0;
    for (let k = i; k < i + 5; k++) word = word * 85 + values[whole[k]];
    bytes.setUint32((i / 5) * 4, word);
  }
  const packed = new Blob([bytes.buffer.slice(0, length)]).stream();
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).text();
}
const drawn = (async () => {
  const byId = (id) => document.getElementById(id), run = (textContent) => document.body.append(make("script", { textContent }));
  try {
    if (typeof DecompressionStream === "undefined")
      throw new Error("this browser has no DecompressionStream; those of 2023 and later have it");
    document.body.insertAdjacentHTML("beforeend", await unzipped(byId("data").textContent));
    run(await unzipped(byId("library").textContent));
    document.querySelectorAll("script[type='text/plain']").forEach((script) => run(script.textContent));
  } catch (error) {
    document.querySelector("h1").after(make("p", { className: "failed", textContent: `No plots: ${error.message}.` }));
  }
})();
// Data of the page by name, arrays of plots in their places; and arrays of float64 as they were written.
function content(name) {
  const read = (id, place) => JSON.parse(document.getElementById(id).textContent, place);
  const arrays = read("arrays");
  return read(name, (key, value) => (key === "bdata" ? arrays[Number(value.slice(1))] : value));
}
function unpacked(packed) {
  const text = atob(packed.bytes), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Float64Array(bytes.buffer);
}
function make(tag, properties, ...children) {
  const found = Object.assign(document.createElement(tag), properties);
  found.append(...children);
  return found;
}
function number(x) {
  return Number.isFinite(x) ? String(Number(x.toPrecision(10))) : "none";
}
