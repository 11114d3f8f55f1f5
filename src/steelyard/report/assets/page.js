// Unpacks the drawing library that the page carries, then draws one plot after another.
"use strict";
(async () => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const night = window.matchMedia("screen and (prefers-color-scheme: dark)");
  const light = { ink: "#1f2933", soft: "#52606d", grid: "#eceff2", line: "#b8c1cc", paper: "#ffffff" };
  const dark = { ink: "#e4e8ec", soft: "#a7b2bd", grid: "#262d34", line: "#56616c", paper: "#14181d" };
  const atNight = { "#1f2933": dark.ink, "#52606d": dark.soft, "#2266aa": "#6aa8e0", "#c23030": "#f08080" };
  const family = 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
  const axis = (colours) => ({
    automargin: true, gridcolor: colours.grid, zeroline: false, linecolor: colours.line, showline: true,
    ticks: "outside", ticklen: 4, tickcolor: colours.line, exponentformat: "power",
  });
  const common = (colours) => ({
    font: { family, size: 12, color: colours.ink }, showlegend: false, hovermode: "closest",
    dragmode: touch ? false : "zoom", margin: { l: 10, r: 8, t: 8, b: 10 }, uirevision: "kept",
    paper_bgcolor: colours.paper, plot_bgcolor: colours.paper,
  });
  const config = { responsive: true, displaylogo: false, displayModeBar: false, plotlyServerURL: "" };

  async function unpack() {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser is too old to draw (it has no DecompressionStream); the tables are complete");
    }
    const packed = Uint8Array.from(atob(document.getElementById("library").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.appendChild(script);
    document.getElementById("library").remove();
  }

  // In print a drawing shrinks with its column: each layer needs to know the size it was drawn in.
  function scalable(place) {
    const box = place.querySelector(".svg-container").getBoundingClientRect();
    if (window.matchMedia("print").matches || !box.width) return;
    place.style.setProperty("--shape", box.width + " / " + box.height);
    for (const layer of place.querySelectorAll(".main-svg")) {
      layer.setAttribute("viewBox", "0 0 " + box.width + " " + box.height);
    }
  }

  // On paper there are 670 pixels between the margins: draw for them, so that words keep their size.
  const paper = { c1: [670, 220], c2: [328, 190], c3: [214, 170] };
  function forPaper(place) {
    const kind = Object.keys(paper).find((name) => place.closest(".panels").classList.contains(name));
    const [width, height] = paper[kind];
    const tall = place.classList.contains("square") ? Math.min(width + 20, 300) : height;
    if (night.matches) repaint(place, light);
    Plotly.relayout(place, { autosize: false, width, height: tall });
  }
  function forScreen(place) {
    if (night.matches) repaint(place, dark);
    Plotly.relayout(place, { autosize: true, width: null, height: null });
  }

  // What is drawn, in the colours of day or night; words stay as they are.
  function painted(place, colours) {
    const swap = (key, value) => (key === "color" && colours === dark && atNight[value]) || value;
    const figure = JSON.parse(JSON.stringify(figures[Number(place.dataset.plot)], swap));
    const layout = { ...common(colours), ...figure.layout };
    for (const name of ["xaxis", "yaxis"]) {
      const title = { ...figure.layout[name].title, font: { size: 12, color: colours.soft }, standoff: 6 };
      layout[name] = { ...axis(colours), ...figure.layout[name], title };
    }
    for (const trace of figure.data) trace.hoverlabel = { namelength: -1 };
    return [figure.data, layout, config];
  }
  const repaint = (place, colours) => Plotly.react(place, ...painted(place, colours));

  async function draw(place) {
    await Plotly.newPlot(place, ...painted(place, night.matches ? dark : light));
    place.on("plotly_afterplot", () => scalable(place));
    scalable(place);
    place.dataset.drawn = "yes";
  }

  const drawn = () => document.querySelectorAll(".plot[data-drawn]");
  window.addEventListener("beforeprint", () => drawn().forEach(forPaper));
  window.addEventListener("afterprint", () => drawn().forEach(forScreen));
  night.addEventListener("change", () => {
    if (!window.matchMedia("print").matches) drawn().forEach((place) => repaint(place, night.matches ? dark : light));
  });

  const places = [...document.querySelectorAll("[data-plot]")];
  if (places.length) {
    try {
      await unpack();
      document.body.dataset.unpacked = (performance.now() / 1000).toFixed(2);
    } catch (error) {
      tell(String(error.message || error));
      for (const place of places) { place.textContent = "This plot could not be drawn."; place.classList.add("failed"); }
      return;
    }
  }
  let began = performance.now();
  for (const place of places) {
    try {
      await draw(place);
    } catch (error) {
      place.textContent = "This plot could not be drawn: " + error;
      place.classList.add("failed");
      tell(String(error));
    }
    if (performance.now() - began > 50) {
      await new Promise((resume) => setTimeout(resume, 0));
      began = performance.now();
    }
  }
  document.body.dataset.seconds = (performance.now() / 1000).toFixed(2);
})().catch((error) => tell(String(error))).finally(() => { document.body.dataset.done = "yes"; });
