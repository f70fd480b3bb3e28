"use strict";
// Data of the page by name, and arrays of float64 as they were written.
function content(name) {
  return JSON.parse(document.getElementById(name).textContent);
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
