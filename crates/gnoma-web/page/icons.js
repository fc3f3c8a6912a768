// The icons of the page: strokes on a grid of 16, drawn for it.

const SVG = "http://www.w3.org/2000/svg";

const PATHS = {
  list: "M2.5 4h11M2.5 8h11M2.5 12h7",
  plus: "M8 3.2v9.6M3.2 8h9.6",
  more: "M3.6 8h.01M8 8h.01M12.4 8h.01",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M8 13V3.2M3.6 7.4 8 3l4.4 4.4",
  down: "M8 3v9.8M3.6 8.6 8 13l4.4-4.4",
  stop: "M5 5h6v6H5z",
  clip: "M12.8 7.4 7.9 12.3a2.9 2.9 0 0 1-4.1-4.1L9 3a1.95 1.95 0 0 1 2.8 2.8l-5.2 5.1",
  file: "M4 2.2h5l3 3v8.6H4zM9 2.2v3h3",
  edit: "M3 13l.7-2.9 6.9-6.9 2.2 2.2-6.9 6.9zM9 4.8 11.2 7",
  terminal: "M2.8 4.5 6.3 8l-3.5 3.5M8.2 12h5",
  search: "M7 11.3a4.3 4.3 0 1 0 0-8.6 4.3 4.3 0 0 0 0 8.6zM10.2 10.2l3.3 3.3",
  web: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM2.4 8h11.2M8 2.3c-3.4 3.6-3.4 7.8 0 11.4M8 2.3c3.4 3.6 3.4 7.8 0 11.4",
  copy: "M5.8 5.8h7v7h-7zM3.2 10.2v-7h7",
  check: "M3.4 8.6l3 3 6.2-7",
  right: "M6.2 4l4 4-4 4",
  ask: "M5.9 6a2.1 2.1 0 1 1 3 1.9c-.7.3-.9.8-.9 1.5M8 12.2h.01",
  alert: "M8 2.6 14 13H2zM8 6.6v3.2M8 11.4h.01",
  diff: "M3.8 2.4h8.4v11.2H3.8zM6.3 6h3.4M8 4.3v3.4M6.3 10.6h3.4",
  hat: "M8 2 12.2 10H3.8zM2.6 12.6h10.8",
  plan: "M6.3 4H13M6.3 8H13M6.3 12H13M3 4h.01M3 8h.01M3 12h.01",
  rewind: "M6.3 3.2 3 6.5l3.3 3.3M3 6.5h6.6a3.4 3.4 0 0 1 0 6.8H6.8",
  redo: "M9.7 3.2 13 6.5 9.7 9.8M13 6.5H6.4a3.4 3.4 0 0 0 0 6.8h2.8",
  fork: "M4.6 3v2.6c0 2 3.4 2.4 3.4 4.4v3M11.4 3v2.6c0 2-3.4 2.4-3.4 4.4",
  bell: "M4 11.2V7.4a4 4 0 0 1 8 0v3.8l1.2 1.4H2.8zM7 14.2h2",
  tune: "M2.5 5h5M11.5 5h2M2.5 11h2M8.5 11h5M9.5 3.2v3.6M6.5 9.2v3.6",
  split: "M2.6 3h10.8v10H2.6zM8 3v10",
  pin: "M8 9.6V14M5.2 2.4h5.6l-.9 4 2.1 3.2H4l2.1-3.2z",
  trash: "M3.2 4.6h9.6M6 4.4v-2h4v2M4.8 4.8l.5 9h5.4l.5-9",
  folder: "M2.4 3.8h4l1.5 1.7h5.7v7H2.4z",
  spark: "M8 2.4l1.4 4.2L13.6 8 9.4 9.4 8 13.6 6.6 9.4 2.4 8l4.2-1.4z",
  chip: "M4.5 4.5h7v7h-7zM6.5 2v2.3M9.5 2v2.3M6.5 11.7V14M9.5 11.7V14M2 6.5h2.3M2 9.5h2.3M11.7 6.5H14M11.7 9.5H14",
  gauge: "M2.6 11.5a5.8 5.8 0 1 1 10.8 0M8 10l2.6-3.4",
  squeeze: "M3 3.5h10M3 12.5h10M8 5.2v1.9M8 10.8V8.9M6.4 6.2 8 7.6l1.6-1.4M6.4 9.8 8 8.4l1.6 1.4",
  good: "M5.2 7.2 7.6 2.6c1 0 1.6.7 1.4 1.8L8.7 6.2h3.4c.8 0 1.3.7 1.1 1.4l-1 4.2c-.2.7-.7 1.2-1.5 1.2H5.2zM5.2 7.2H2.8V13h2.4",
  bad: "M5.2 8.8l2.4 4.6c1 0 1.6-.7 1.4-1.8l-.3-1.8h3.4c.8 0 1.3-.7 1.1-1.4l-1-4.2c-.2-.7-.7-1.2-1.5-1.2H5.2zM5.2 8.8H2.8V3h2.4",
  note: "M2.8 3.4h10.4v7.4H8.2l-3 2.6v-2.6H2.8z",
  key: "M2.5 4.5h11v7h-11zM5 7h.01M8 7h.01M11 7h.01M5.5 9.5h5",
};

/** An icon beside words; it says nothing by itself. @param {string} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name] ?? PATHS.spark);
  svg.append(path);
  return svg;
}

/** A part of a whole, as a bar. @param {number} share 0 to 1 */
export function bar(share) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "bar");
  svg.setAttribute("aria-hidden", "true");
  const part = document.createElementNS(SVG, "rect");
  part.setAttribute("width", `${100 * share}%`);
  part.setAttribute("height", "100%");
  svg.append(part);
  return svg;
}

/** How full something is, as a ring. @param {number} share 0 to 1 */
export function ring(share) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon ring");
  svg.setAttribute("aria-hidden", "true");
  const round = 2 * Math.PI * 5.5;
  for (const part of ["whole", "part"]) {
    const circle = document.createElementNS(SVG, "circle");
    for (const [name, value] of Object.entries({ cx: 8, cy: 8, r: 5.5, class: part })) circle.setAttribute(name, String(value));
    if (part === "part") circle.setAttribute("stroke-dasharray", `${round * Math.min(1, share)} ${round}`);
    if (part === "whole" || share > 0) svg.append(circle);
  }
  return svg;
}
