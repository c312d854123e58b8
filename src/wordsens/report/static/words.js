// A text's words: what is known of one, on hover, click and keyboard.
const words = (() => {
  const shown = (word) => word.attained ?? word.removal ?? 0;
  const number = (value) => Number(value.toPrecision(3)).toString();

  function element(name, text, parent) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    parent?.append(made);
    return made;
  }

  function bar(word, most) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 100 8");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    const ends = [["track", 100], ["open", (100 * (word.upper ?? 0)) / most], ["reach", (100 * shown(word)) / most]];
    for (const [name, width] of ends) {
      const rect = document.createElementNS(svg.namespaceURI, "rect");
      rect.setAttribute("class", name);
      rect.setAttribute("width", width);
      rect.setAttribute("height", 8);
      rect.setAttribute("rx", 1.5);
      svg.append(rect);
    }
    return svg;
  }

  function tell(panel, word, most) {
    panel.replaceChildren();
    const name = element("h4", undefined, panel);
    element("bdi", word.text, name);
    panel.append(bar(word, most));
    const list = element("dl", undefined, panel);
    const fact = (what, value) => {
      element("dt", what, list);
      element("bdi", value, element("dd", undefined, list));
    };
    if (word.attained !== null) fact("Attained", number(word.attained));
    if (word.upper !== null) fact("At most", number(word.upper));
    if (word.removal !== null) fact("Taken out", number(word.removal));
    if (word.swap !== null) fact("Best real swap", `${word.swappedFor} · ${number(word.swap)}`);
    if (!word.moved.length) return;
    element("h5", "What its strongest change does", panel);
    const table = element("table", undefined, panel);
    const attention = word.moved[0][2] !== null;
    const head = element("tr", undefined, element("thead", undefined, table));
    for (const title of ["word", "moves by", ...(attention ? [`attention to “${word.text}”`] : [])]) {
      element("th", title, head).scope = "col";
    }
    const body = element("tbody", undefined, table);
    for (const [row, change, before, after] of word.moved) {
      const line = element("tr", undefined, body);
      element("bdi", row, element("td", undefined, line));
      element("td", number(change), line);
      if (attention) element("td", `${number(before)} → ${number(after)}`, line);
    }
  }

  const most = (known) => Math.max(...known.map((word) => Math.max(word.upper ?? 0, shown(word))));
  const largest = (known) => known.reduce((best, word, at) => (shown(word) > shown(known[best]) ? at : best), 0);

  // The words of `heat` tell of themselves in the panel; `known` gives what is known of them now, `picked` is told of a
  // word that was clicked or reached by keyboard. Returns functions that tell again, and that pin a word.
  function browse(heat, panel, known, picked = () => {}) {
    const spans = [...heat.querySelectorAll(".w")];
    const place = new Map(spans.map((span, index) => [span, index]));
    let pinned = largest(known());
    let at = pinned;

    const show = (index) => {
      spans[at].classList.remove("here");
      at = index;
      spans[at].classList.add("here");
      tell(panel, known()[at], most(known()));
    };
    const pin = (index) => {
      spans[pinned].tabIndex = -1;
      pinned = index;
      spans[index].tabIndex = 0;
      show(index);
    };
    const pick = (event) => {
      if (!place.has(event.target)) return;
      pin(place.get(event.target));
      picked(pinned);
    };
    spans[0].tabIndex = -1;
    pin(pinned);

    heat.addEventListener("pointerover", (event) => {
      if (place.has(event.target)) show(place.get(event.target));
    });
    heat.addEventListener("pointerleave", () => show(pinned));
    heat.addEventListener("click", pick);
    heat.addEventListener("focusin", pick);
    const forward = heat.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    const back = heat.dir === "rtl" ? "ArrowRight" : "ArrowLeft";
    heat.addEventListener("keydown", (event) => {
      const steps = { [forward]: 1, [back]: -1, ArrowDown: 10, ArrowUp: -10, Home: -Infinity, End: Infinity };
      if (!(event.key in steps)) return;
      event.preventDefault();
      spans[Math.min(spans.length - 1, Math.max(0, pinned + steps[event.key]))].focus();
    });
    return { again: () => show(at), pin, largest: () => largest(known()) };
  }

  return { browse, tell, most };
})();
