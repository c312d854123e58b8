// Plots: a figure drawn from its data, read by pointer and keyboard, its curves and axes switched.
const plots = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 290;
  const EDGE = { left: 46, right: 10, top: 24, bottom: 40 };
  const MANY = 120; // marks of a curve, beyond which they are drawn smaller and let each other through
  const SHAPES = {
    o: (r) => `m${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
    s: (r) => `m${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
    "^": (r) => `m0,${-1.2 * r}l${1.15 * r},${2 * r}h${-2.3 * r}z`,
    v: (r) => `m0,${1.2 * r}l${1.15 * r},${-2 * r}h${-2.3 * r}z`,
    D: (r) => `m0,${-1.3 * r}l${1.3 * r},${1.3 * r}l${-1.3 * r},${1.3 * r}l${-1.3 * r},${-1.3 * r}z`,
    P: (r) => `m${-r / 2.5},${-r * 1.2}h${r / 1.25}v${r * 0.8}h${r * 0.8}v${r / 1.25}h${-r * 0.8}v${r * 0.8}h${-r / 1.25}v${-r * 0.8}h${-r * 0.8}v${-r / 1.25}h${r * 0.8}z`,
    X: (r) => `m${-r},${-r}l${r},${r / 1.6}l${r},${-r / 1.6}l${-r / 1.6},${r}l${r / 1.6},${r}l${-r},${-r / 1.6}l${-r},${r / 1.6}l${r / 1.6},${-r}z`,
  };

  function draw(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  }

  const path = (points) => points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");

  // Every number that an axis must hold, of all the figures that are compared with this one.
  function extent(alike, axis, panel) {
    const values = [];
    for (const { panels, shared } of alike) {
      for (const { curves, guides } of shared || !axis ? panels : [panel]) {
        for (const curve of curves) {
          for (const mark of curve.marks) values.push(...(axis ? mark.slice(1, 4) : [mark[0]]));
          for (const point of [...curve.band, ...curve.words]) values.push(...(axis ? point.slice(1) : [point[0]]));
          for (const point of [...curve.fit, ...curve.predicted]) values.push(point[axis]);
        }
        for (const guide of guides) for (const point of guide.points) values.push(point[axis]);
      }
    }
    return values;
  }

  class Plot {
    constructor(figure, panel, box) {
      Object.assign(this, { figure, panel, box, at: -1 });
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.setAttribute("role", "status");
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", `${panel.title || figure.title}. Arrow keys read its marks.`);
      box.addEventListener("pointermove", (event) => this.near(event));
      box.addEventListener("pointerdown", (event) => this.near(event));
      box.addEventListener("pointerleave", () => this.point(-1));
      box.addEventListener("blur", () => this.point(-1));
      box.addEventListener("keydown", (event) => this.key(event));
    }

    render() {
      const width = Math.max(220, this.box.clientWidth);
      const { figure, panel } = this;
      const inner = [[EDGE.left, width - EDGE.right], [HEIGHT - EDGE.bottom, EDGE.top]];
      const [x, y] = [figure.x, figure.y].map((axis, at) => {
        const own = at ? panel.yLimits : panel.xLimits;
        return scales.scale(own ?? scales.limits(extent(figure.alike, at, panel), axis.log), inner[at], axis.log);
      });
      const sizes = [...new Set(panel.curves.flatMap((curve) => curve.marks.map((mark) => mark[0])))].sort((a, b) => a - b);
      if (sizes.length <= 8 && sizes.every((size, at) => !at || x.at(size) - x.at(sizes[at - 1]) > 26)) x.ticks = sizes;
      const inside = ([px, py]) => [
        Math.min(inner[0][1], Math.max(inner[0][0], px)), Math.max(inner[1][1], Math.min(inner[1][0], py)),
      ];
      const to = ([a, b]) => [x.at(a), y.at(b)];
      this.svg = document.createElementNS(SVG, "svg");
      this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      this.svg.setAttribute("aria-hidden", "true");
      this.axes(x, y, width);
      const clip = draw("svg", {
        x: EDGE.left, y: EDGE.top, width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom,
        viewBox: `${EDGE.left} ${EDGE.top} ${width - EDGE.left - EDGE.right} ${HEIGHT - EDGE.top - EDGE.bottom}`,
      }, this.svg);
      for (const guide of panel.guides) draw("path", { d: path(guide.points.map(to)), class: "guide" }, clip);
      this.places = [];
      for (const curve of panel.curves.filter((one) => !figure.hidden.has(one.name))) {
        const group = draw("g", { class: `c${curve.colour}` }, clip);
        const shade = (name, points, from, upTo) => {
          if (!points.length) return;
          const around = [...points.map((point) => [point[0], point[upTo]]), ...points.map((point) => [point[0], point[from]]).reverse()];
          draw("path", { d: `${path(around.map(to))}Z`, class: name }, group);
        };
        shade("words", curve.words, 1, 4);
        shade("words half", curve.words, 2, 3);
        shade("band", curve.band, 1, 2);
        if (curve.faint.length) draw("path", { d: curve.faint.map((line) => path(line.map(to))).join(""), class: "faint" }, group);
        if (curve.fit.length) draw("path", { d: this.bent(curve.fit, to), class: "line" }, group);
        if (curve.joined) draw("path", { d: path(curve.marks.map(to)), class: "line" }, group);
        if (curve.predicted.length) draw("path", { d: path(curve.predicted.map(to)), class: "predicted" }, group);
        const bars = curve.marks.filter((mark) => mark[2] !== null);
        draw("path", { d: bars.map(([a, , low, high]) => path([[a, low], [a, high]].map(to))).join(""), class: "bars" }, group);
        const top = draw("g", { class: `c${curve.colour}` }, this.svg);
        const places = curve.marks.map((mark) => ({ mark, curve, spot: inside(to(mark)) }));
        const many = places.length > MANY;
        const shape = SHAPES[curve.shape](many ? 2.6 : 3.6);
        const kind = `marks${curve.hollow ? " hollow" : ""}${many ? " many" : ""}`;
        draw("path", { d: places.map(({ spot }) => path([spot]) + shape).join(""), class: kind }, top);
        this.places.push(...places);
      }
      this.here = draw("circle", { r: 8, class: "here", visibility: "hidden" }, this.svg);
      this.width = width;
      this.box.replaceChildren(this.svg, this.tip);
      this.point(-1);
    }

    // A power law is straight on two logarithmic axes only.
    bent([[a, low], [b, high]], to) {
      if (a <= 0 || low <= 0 || high <= 0 || a === b) return path([[a, low], [b, high]].map(to));
      const exponent = Math.log(high / low) / Math.log(b / a);
      const steps = Array.from({ length: 25 }, (_, at) => a * (b / a) ** (at / 24));
      return path(steps.map((value) => to([value, low * (value / a) ** exponent])));
    }

    axes(x, y, width) {
      const [bottom, right] = [HEIGHT - EDGE.bottom, width - EDGE.right];
      draw("text", { x: EDGE.left, y: 13, class: "title" }, this.svg).textContent = this.panel.title;
      draw("path", { d: y.ticks.map((tick) => path([[EDGE.left, y.at(tick)], [right, y.at(tick)]])).join(""), class: "grid" }, this.svg);
      draw("path", { d: path([[EDGE.left, bottom], [right, bottom]]), class: "axis" }, this.svg);
      for (const tick of x.ticks) {
        draw("text", { x: x.at(tick), y: bottom + 15, "text-anchor": "middle" }, this.svg).textContent = scales.shown(tick);
      }
      for (const tick of y.ticks) {
        draw("text", { x: EDGE.left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, this.svg).textContent = scales.shown(tick);
      }
      const middle = (EDGE.left + right) / 2;
      draw("text", { x: middle, y: HEIGHT - 6, "text-anchor": "middle" }, this.svg).textContent = this.figure.x.label;
      const turn = `translate(10 ${(EDGE.top + bottom) / 2}) rotate(-90)`;
      draw("text", { transform: turn, "text-anchor": "middle" }, this.svg).textContent = this.figure.y.label;
    }

    near(event) {
      const box = this.svg.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      let [best, least] = [-1, 30 ** 2];
      this.places.forEach(({ spot: [x, y] }, at) => {
        const far = (x - px) ** 2 + (y - py) ** 2;
        if (far < least) [best, least] = [at, far];
      });
      this.point(best);
    }

    key(event) {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") this.point(-1);
      if (!step || !this.places.length) return;
      event.preventDefault();
      this.point((Math.max(this.at, step < 0 ? 0 : -1) + step + this.places.length) % this.places.length);
    }

    point(at) {
      if (at === this.at && this.tip.textContent) return;
      this.at = at;
      this.tip.replaceChildren();
      this.here?.setAttribute("visibility", at < 0 ? "hidden" : "visible");
      if (at < 0) return;
      const { mark: [x, y, , , ...told], curve, spot } = this.places[at];
      this.here.setAttribute("cx", spot[0]);
      this.here.setAttribute("cy", spot[1]);
      const name = document.createElement("strong");
      name.textContent = curve.name;
      const where = `${this.figure.x.label}: ${scales.shown(x)}`;
      const value = `${this.figure.y.label}: ${scales.shown(Number(y.toPrecision(4)))}`;
      this.tip.append(name, ...[where, value, ...told, ...(curve.note ? [curve.note] : [])].flatMap((line) => [line, document.createElement("br")]));
      const left = Math.min(Math.max(0, spot[0] + 12), Math.max(0, this.width - this.tip.offsetWidth));
      const below = spot[1] + 14;
      this.tip.style.left = `${left}px`;
      this.tip.style.top = `${below}px`;
    }
  }

  // Draws the figure into its frame; `alike` are the figures that share its axes, itself among them.
  function mount(frame, figure, alike) {
    figure.hidden = new Set();
    figure.alike = alike;
    if (figure.panels.length > 1) frame.classList.add("wide");
    const plots = figure.panels.map((panel) => {
      const box = document.createElement("div");
      box.className = "plot";
      frame.querySelector(".panels").append(box);
      return new Plot(figure, panel, box);
    });
    const render = () => plots.forEach((plot) => plot.render());
    let width = 0;
    new ResizeObserver(([entry]) => {
      if (Math.abs(entry.contentRect.width - width) < 1) return;
      width = entry.contentRect.width;
      render();
    }).observe(frame);
    render();
    width = frame.getBoundingClientRect().width;
    for (const button of frame.querySelectorAll("[data-axis]")) {
      button.addEventListener("click", () => {
        const axis = figure[button.dataset.axis];
        axis.log = !axis.log;
        button.setAttribute("aria-pressed", axis.log);
        render();
      });
    }
    for (const button of frame.querySelectorAll("[data-curve]")) {
      const sign = document.createElementNS(SVG, "svg");
      for (const [key, value] of Object.entries({ width: 12, height: 12, viewBox: "-6 -6 12 12", "aria-hidden": "true" })) sign.setAttribute(key, value);
      const hollow = "hollow" in button.dataset ? " hollow" : "";
      draw("path", { d: `M0,0${SHAPES[button.dataset.shape](4)}`, class: `marks${hollow}` }, sign);
      button.prepend(sign);
      button.addEventListener("click", () => {
        const name = button.dataset.curve;
        if (!figure.hidden.delete(name)) figure.hidden.add(name);
        button.setAttribute("aria-pressed", !figure.hidden.has(name));
        render();
      });
    }
    return { plots, render };
  }

  return { mount };
})();
