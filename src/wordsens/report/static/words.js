// The words of each text: what is known of one, on hover, click and keyboard.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent).texts;
  const shown = (word) => word.attained ?? word.removal;
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
    for (const title of ["row", "moves by", ...(attention ? ["attention to it"] : [])]) {
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

  document.querySelectorAll(".text").forEach((article, at) => {
    const words = data[at];
    const most = Math.max(...words.map((word) => Math.max(word.upper ?? 0, shown(word))));
    const spans = [...article.querySelectorAll(".w")];
    const place = new Map(spans.map((span, index) => [span, index]));
    const panel = article.querySelector(".detail");
    const heat = article.querySelector(".heat");
    const largest = words.reduce((best, word, index) => (shown(word) > shown(words[best]) ? index : best), 0);
    let pinned = largest;
    let marked = null;

    const show = (index) => {
      marked?.classList.remove("here");
      marked = spans[index];
      marked.classList.add("here");
      tell(panel, words[index], most);
    };
    const pin = (index) => {
      spans[pinned].tabIndex = -1;
      pinned = index;
      spans[index].tabIndex = 0;
      show(index);
    };
    spans[0].tabIndex = -1;
    pin(largest);

    heat.addEventListener("pointerover", (event) => {
      if (place.has(event.target)) show(place.get(event.target));
    });
    heat.addEventListener("pointerleave", () => show(pinned));
    heat.addEventListener("click", (event) => {
      if (place.has(event.target)) pin(place.get(event.target));
    });
    heat.addEventListener("focusin", (event) => {
      if (place.has(event.target)) pin(place.get(event.target));
    });
    const forward = heat.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    const back = heat.dir === "rtl" ? "ArrowRight" : "ArrowLeft";
    heat.addEventListener("keydown", (event) => {
      const steps = { [forward]: 1, [back]: -1, ArrowDown: 10, ArrowUp: -10, Home: -Infinity, End: Infinity };
      if (!(event.key in steps)) return;
      event.preventDefault();
      spans[Math.min(spans.length - 1, Math.max(0, pinned + steps[event.key]))].focus();
    });
  });
})();
